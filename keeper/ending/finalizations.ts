/** Finalizations with the engine as the owner of the queue. */
import { ask } from '../engine/link/engine.ts'
import { type EngineParts, WORKER_BUDGET_MS } from '../relayer/bytes-store.ts'
import type { Finalizations } from './ports.ts'

export const createFinalizations = ({ engine }: Pick<EngineParts, 'engine'>): Finalizations => ({
  finalize: (marketId, _fence, _headTime, report) =>
    ask<'finalize'>(engine, { kind: 'finalize', marketId, report }, WORKER_BUDGET_MS),
})

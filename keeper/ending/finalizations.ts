/** Finalizations by decisions of the worker on the tables. */
import type { ActionQueue } from '../actions/ports.ts'
import type { Finalizations } from './ports.ts'

export const finalizeThrough = (queue: ActionQueue): Finalizations => ({
  finalize: (marketId, fence, headTime, report) =>
    queue.enqueue(marketId, fence, headTime, ({ asOf }) => ({ kind: 'finalize_market', asOf, report })),
})

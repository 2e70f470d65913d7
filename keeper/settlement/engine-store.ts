/** A market's queue of actions with the engine as its owner: numbers, hashes and ends are its decisions. */
import { sql } from 'kysely'
import { loadPending } from '../../db/actions.ts'
import { keysOfLane, recordRevert } from '../../db/relayers.ts'
import { constant } from '../../db/values.ts'
import { ask } from '../engine/link/engine.ts'
import {
  acceptBytes,
  type EngineParts,
  storeBytes,
  WORKER_BUDGET_MS,
  withoutRefused,
} from '../relayer/bytes-store.ts'
import type { RelayerLane } from '../relayer/ports.ts'
import type { RequeueStore, SettlementStore, Voids } from './ports.ts'
import { createSettlementStore } from './store.ts'
import { storedError } from './void-store.ts'

export function createEngineSettlementStore(parts: EngineParts): SettlementStore {
  const { db, engine } = parts
  const tables = createSettlementStore(db)

  const hasOpen = async (lane: RelayerLane): Promise<boolean> => {
    const open = await db
      .selectFrom('relayer_transactions')
      .select('tx_hash')
      .where('relayer', '=', sql<string>`any(${keysOfLane(lane)})`)
      .where('status', 'in', [constant('SIGNED'), constant('BROADCAST')])
      .limit(1)
      .executeTakeFirst()
    return open !== undefined
  }

  return {
    async view(marketId, lane) {
      const { actions, transactions } = await tables.view(marketId, lane)
      return { actions, transactions: await withoutRefused(parts, transactions) }
    },

    async reserveNext(marketId, { name, relayer }, _fence, latestAsOf) {
      const command = { kind: 'next_action', marketId, relayer, latestAsOf } as const
      const answer = await ask<'next_action'>(engine, command, WORKER_BUDGET_MS)
      if (answer.kind === 'none') return null
      if (answer.kind !== 'action')
        throw new Error(`lane ${name} of ${relayer} has no action: ${answer.kind}`)
      const { queueNo, asOf, action, actionId, nonce } = answer
      return { queueNo, asOf, action, actionId, nonce }
    },

    async storeSigned(marketId, lane, fence, { queueNo, action, nonce }, { hash, raw, signedAt }) {
      const transaction = { hash, raw, nonce, purpose: action.kind, signedAt }
      await storeBytes(parts, lane, fence, [transaction])
      return acceptBytes(parts, lane, transaction, { action: { marketId, queueNo }, attempt: 1 })
    },

    async adoptActionId(marketId, lane, _fence, actionId) {
      const command = { kind: 'adopt_action_id', marketId, actionId, hasOpen: await hasOpen(lane) } as const
      const answer = await ask<'adopt_action_id'>(engine, command, WORKER_BUDGET_MS)
      return answer.kind === 'adopted' ? answer.replaced : null
    },

    async noteSubmitted(marketId, _fence, { relayer, nonce }) {
      await ask<'submitted'>(engine, { kind: 'submitted', marketId, relayer, nonce }, WORKER_BUDGET_MS)
    },

    relayerBefore: tables.relayerBefore,
  }
}

/** Notes with the first pending action's reverted transaction why it was refused. Returns nothing if another action is the first one by now. */
async function noteRevert(
  { db }: Pick<EngineParts, 'db'>,
  marketId: number,
  { queueNo, error }: { readonly queueNo: number; readonly error: string },
): Promise<void> {
  const [first] = await loadPending(db, marketId)
  if (first === undefined || first.queue_no !== queueNo || first.nonce === null) return
  const { relayer, nonce } = first
  await db.transaction().execute((tx) => recordRevert(tx, relayer, nonce, error))
}

export const createEngineVoids = (parts: EngineParts): Voids => ({
  async voidFrom(spec, _fence, { queueNo, culprit }) {
    const error = storedError(culprit.error, culprit.kind === 'unnamed')
    await noteRevert(parts, spec.marketId, { queueNo, error })
    const command = { kind: 'void', spec, queueNo, culprit } as const
    const answer = await ask<'void'>(parts.engine, command, WORKER_BUDGET_MS)
    if (answer.kind !== 'voided') return null
    const { batchIds, isRestricted } = answer
    return { batchIds, isRestricted }
  },
})

export const createEngineRequeueStore = (parts: EngineParts): RequeueStore => ({
  async restart(spec, _fence, { queueNo, isDropped, error }) {
    await noteRevert(parts, spec.marketId, { queueNo, error })
    const command = { kind: 'restart_queue', spec, queueNo, isDropped, error } as const
    const answer = await ask<'restart_queue'>(parts.engine, command, WORKER_BUDGET_MS)
    if (answer.kind === 'not_first') return null
    return { unsettleableFrom: answer.kind === 'unsettleable' ? answer.queueNo : null }
  },
})

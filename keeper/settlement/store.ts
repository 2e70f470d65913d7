/** A market's queue of actions with the engine as its owner: numbers, hashes and ends are its decisions. */
import { sql } from 'kysely'
import { type ActionRow, loadPending } from '../../db/actions.ts'
import type { Db } from '../../db/client.ts'
import { keysOfLane, recordRevert } from '../../db/relayers.ts'
import { anyOf, constant } from '../../db/values.ts'
import type { Millis } from '../../domain/units.ts'
import { ask } from '../engine/link/engine.ts'
import {
  acceptBytes,
  type EngineParts,
  storeBytes,
  WORKER_BUDGET_MS,
  withoutRefused,
} from '../relayer/bytes-store.ts'
import type { RelayerLane, StoredTransaction } from '../relayer/ports.ts'
import { toTransaction } from '../relayer/stored-transaction.ts'
import type { PendingAction, RequeueStore, SettlementStore, Voids } from './ports.ts'

const toAction = (row: ActionRow): PendingAction => ({
  queueNo: row.queue_no,
  kind: row.kind,
  asOf: row.as_of as Millis,
  status: row.status as PendingAction['status'],
  relayer: row.relayer,
  nonce: row.nonce,
})

/** The open transactions of the lane's keys, and all with a nonce of the actions. */
async function transactionsOf(
  db: Db,
  lane: RelayerLane,
  actions: readonly PendingAction[],
): Promise<StoredTransaction[]> {
  const nonces = actions.flatMap(({ nonce }) => (nonce === null ? [] : [nonce]))
  const rows = await db
    .selectFrom('relayer_transactions')
    .selectAll()
    .where('relayer', '=', sql<string>`any(${keysOfLane(lane)})`)
    .where('chain_id', '=', lane.chainId)
    .where((t) =>
      t.or([
        t('status', 'in', [constant('SIGNED'), constant('BROADCAST')]),
        t('nonce', '=', anyOf('bigint', nonces)),
      ]),
    )
    .orderBy('relayer')
    .orderBy('nonce')
    .orderBy('signed_at')
    .execute()
  return rows.map(toTransaction)
}

export function createSettlementStore(parts: EngineParts): SettlementStore {
  const { db, engine } = parts

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
      const actions = (await loadPending(db, marketId)).map(toAction)
      return { actions, transactions: await withoutRefused(parts, await transactionsOf(db, lane, actions)) }
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

    async relayerBefore(marketId, queueNo) {
      const row = await db
        .selectFrom('actions')
        .select('relayer')
        .where('market_id', '=', marketId)
        .where('queue_no', '<', queueNo)
        .where('status', '=', constant('MINED'))
        .orderBy('queue_no', 'desc')
        .limit(1)
        .executeTakeFirst()
      return row?.relayer ?? null
    },
  }
}

/**
 * Records with the first pending action why its transaction reverted. Returns nothing if another action is first
 * meanwhile.
 */
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

/** Prefix of the stored error of a revert that names neither an order nor an account. */
const UNNAMED = 'unnamed: '

const storedError = (error: string, isUnnamed: boolean): string => `${isUnnamed ? UNNAMED : ''}${error}`

export const createVoids = (parts: EngineParts): Voids => ({
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

export const createRequeueStore = (parts: EngineParts): RequeueStore => ({
  async restart(spec, _fence, { queueNo, isDropped, error }) {
    await noteRevert(parts, spec.marketId, { queueNo, error })
    const command = { kind: 'restart_queue', spec, queueNo, isDropped, error } as const
    const answer = await ask<'restart_queue'>(parts.engine, command, WORKER_BUDGET_MS)
    if (answer.kind === 'not_first') return null
    return { unsettleableFrom: answer.kind === 'unsettleable' ? answer.queueNo : null }
  },
})

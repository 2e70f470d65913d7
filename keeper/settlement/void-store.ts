/** Voids, in one transaction, every action from the first one that will not be mined. */
import { changeReserved, lockFunds } from '../../db/accounts.ts'
import { type ActionRow, endActions, isSingle, loadPending, partsOf } from '../../db/actions.ts'
import { voidBatches } from '../../db/batches.ts'
import type { Db, Tx } from '../../db/client.ts'
import { checkFence } from '../../db/fence.ts'
import { failFills } from '../../db/fills.ts'
import { appendRows, lockShard, type ShardHead } from '../../db/journal.ts'
import { loadReservedFee, resetActionId, restrictToCancels } from '../../db/markets.ts'
import { loadLiveOrders, updateOrders } from '../../db/orders.ts'
import { loadPositions, minedPosition, setMatchedPositions } from '../../db/positions.ts'
import { recordRevert } from '../../db/relayers.ts'
import { anyOf, constant } from '../../db/values.ts'
import { type MarketRow, marketShard } from '../../domain/journal/journal-row.ts'
import { BEHIND_VOID } from '../../domain/risk/liquidation-outcome.ts'
import type { VoidedBatch } from '../../domain/settlement/void-batch.ts'
import type { MarketId, UserId } from '../../domain/units.ts'
import type { Voided, VoidStore, VoidTransaction } from './ports.ts'
import { noteDropped } from './requeue-store.ts'

/** Prefix of the stored error of a revert that names neither an order nor an account. */
const UNNAMED = 'unnamed: '

export const storedError = (error: string, isUnnamed: boolean): string =>
  `${isUnnamed ? UNNAMED : ''}${error}`

async function batchesOf(tx: Tx, marketId: MarketId, actions: readonly ActionRow[]): Promise<VoidedBatch[]> {
  const fromPart = new Map<number, number>()
  for (const { batch_id, part } of partsOf(actions)) if (!fromPart.has(batch_id)) fromPart.set(batch_id, part)
  const fills = await tx
    .selectFrom('fills')
    .selectAll()
    .where('market_id', '=', marketId)
    .where('batch_id', '=', anyOf('bigint', fromPart.keys()))
    .orderBy('part')
    .orderBy('place')
    .execute()
  const [first] = actions
  return [...fromPart].map(([batchId, from]) => ({
    batchId,
    fromPart: from,
    isReverted: first !== undefined && isReverted(first) && first.batch_id === batchId,
    fills: fills
      .filter(({ batch_id, part }) => batch_id === batchId && part >= from)
      .map(({ fill_id, order_id, user_id, part, side, steps, taker_steps, held }) => ({
        ...{ fill_id, order_id, user_id, part, side, steps, taker_steps },
        held: held.toString(),
      })),
  }))
}

async function isAfterUnnamed(tx: Tx, marketId: MarketId, queueNo: number): Promise<boolean> {
  const last = tx
    .selectFrom('actions')
    .select(['status', 'relayer', 'nonce'])
    .where('market_id', '=', marketId)
    .where('queue_no', '<', queueNo)
    .where('kind', '=', 'settle_part')
    .where('status', 'in', ['MINED', 'REVERTED'])
    .orderBy('queue_no', 'desc')
    .limit(constant(1))
  const before = await tx
    .selectFrom(last.as('last'))
    .leftJoin('relayer_transactions as t', (join) =>
      join
        .onRef('t.relayer', '=', 'last.relayer')
        .onRef('t.nonce', '=', 'last.nonce')
        .on('t.status', '=', 'REVERTED'),
    )
    .select(['last.status', 't.error'])
    .executeTakeFirst()
  return before?.status === 'REVERTED' && (before.error?.startsWith(UNNAMED) ?? false)
}

/** The first action counts as reverted if a transaction of it was signed: none of them can be mined any more. */
const isReverted = (action: ActionRow): action is ActionRow & { readonly nonce: number } =>
  action.status !== 'QUEUED' && action.nonce !== null

async function endAll(
  tx: Tx,
  marketId: MarketId,
  actions: readonly ActionRow[],
  voided: Voided,
): Promise<void> {
  const first = actions[0] as ActionRow
  const queueNos = actions.map(({ queue_no }) => queue_no)
  await endActions(tx, marketId, queueNos, 'VOIDED')
  if (!isReverted(first)) return
  await endActions(tx, marketId, [first.queue_no], 'REVERTED')
  await recordRevert(tx, first.relayer, first.nonce, storedError(voided.error, voided.isUnnamed))
}

async function save(
  tx: Tx,
  marketId: MarketId,
  head: ShardHead,
  actions: readonly ActionRow[],
  { voided, mined }: { readonly voided: Voided; readonly mined: VoidTransaction['mined'] },
): Promise<void> {
  await endAll(tx, marketId, actions, voided)
  const parts = partsOf(actions)
  await failFills(tx, marketId, parts)
  await voidBatches(
    tx,
    marketId,
    parts.map(({ batch_id }) => batch_id),
  )
  await updateOrders(tx, voided.orders)
  await setMatchedPositions(tx, marketId, mined)
  await changeReserved(tx, voided.reserved)
  const firstActionId = actions.find(({ action_id }) => action_id !== null)?.action_id
  const rows: MarketRow[] = [...voided.rows]
  rows.push(...(await noteDropped(tx, actions.filter(isSingle), BEHIND_VOID, voided.at)))
  if (firstActionId != null) {
    await resetActionId(tx, marketId, firstActionId - 1)
    rows.push({ kind: 'queue_restarted', requeued: [], last_action_id: firstActionId - 1, at: voided.at })
  }
  if (voided.cancelOnly && (await restrictToCancels(tx, marketId)))
    rows.push({ kind: 'market_restricted', mode: 'cancel_only', why: 'reverts' })
  await appendRows(tx, head, rows)
}

export const createVoidStore = (db: Db): VoidStore => ({
  transaction: (marketId, fence, fromQueueNo, work) =>
    db.transaction().execute(async (tx) => {
      const head = await lockShard(tx, marketShard(marketId))
      await checkFence(tx, fence)
      const actions = await loadPending(tx, marketId)
      if (actions[0]?.queue_no !== fromQueueNo) return false
      const batches = await batchesOf(tx, marketId, actions)
      const accounts = new Set(batches.flatMap(({ fills }) => fills.map(({ user_id }) => user_id as UserId)))
      const funds = await lockFunds(tx, accounts)
      const mined = await loadPositions(tx, marketId, accounts, minedPosition)
      await work({
        batches,
        orders: await loadLiveOrders(tx, marketId, accounts),
        mined,
        funds,
        reservedFee: await loadReservedFee(tx, marketId),
        isAfterUnnamed: await isAfterUnnamed(tx, marketId, fromQueueNo),
        save: (voided) => save(tx, marketId, head, actions, { voided, mined }),
      })
      return true
    }),
})

/** Taking back, in one transaction, everything from the first action that will not be mined. */
import { type Selectable, sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { checkFence } from '../../db/fence.ts'
import { appendRows, lockShard, type ShardHead } from '../../db/journal.ts'
import type { ActionsTable } from '../../db/schema.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { VoidedBatch } from '../../domain/settlement/void-batch.ts'
import type { MarketId, UserId } from '../../domain/units.ts'
import {
  addReserved,
  liveOrders,
  lockFunds,
  minedPosition,
  positionsOf,
  writeMatched,
  writeOrders,
} from '../rows.ts'
import type { Voided, VoidStore, VoidTransaction } from './ports.ts'

type ActionRow = Selectable<ActionsTable>

const UNMINED = ['QUEUED', 'SIGNED', 'SUBMITTED'] as const
/** Starts the stored error of a revert that named nobody. */
const UNNAMED = 'unnamed: '

async function unmined(tx: Tx, marketId: MarketId): Promise<ActionRow[]> {
  return tx
    .selectFrom('actions')
    .selectAll()
    .where('market_id', '=', marketId)
    .where('status', 'in', UNMINED)
    .orderBy('queue_no')
    .execute()
}

async function batchesOf(tx: Tx, marketId: MarketId, actions: readonly ActionRow[]): Promise<VoidedBatch[]> {
  const fromPart = new Map<number, number>()
  for (const { batch_id, part } of actions) if (!fromPart.has(batch_id)) fromPart.set(batch_id, part)
  const fills = await tx
    .selectFrom('fills')
    .selectAll()
    .where('market_id', '=', marketId)
    .where('batch_id', 'in', [...fromPart.keys()])
    .orderBy('part')
    .orderBy('place')
    .execute()
  return [...fromPart].map(([batchId, from]) => ({
    batchId,
    fromPart: from,
    fills: fills
      .filter(({ batch_id, part }) => batch_id === batchId && part >= from)
      .map(({ fill_id, order_id, user_id, part, side, steps, taker_steps, held }) => ({
        ...{ fill_id, order_id, user_id, part, side, steps, taker_steps },
        held: held.toString(),
      })),
  }))
}

async function isAfterUnnamed(tx: Tx, marketId: MarketId, queueNo: number): Promise<boolean> {
  const before = await tx
    .selectFrom('actions')
    .leftJoin('relayer_transactions as t', (join) =>
      join
        .onRef('t.relayer', '=', 'actions.relayer')
        .onRef('t.nonce', '=', 'actions.nonce')
        .on('t.status', '=', 'REVERTED'),
    )
    .select(['actions.status', 't.error'])
    .where('market_id', '=', marketId)
    .where('queue_no', '<', queueNo)
    .where('actions.status', 'in', ['MINED', 'REVERTED'])
    .orderBy('queue_no', 'desc')
    .limit(1)
    .executeTakeFirst()
  return before?.status === 'REVERTED' && (before.error?.startsWith(UNNAMED) ?? false)
}

async function endActions(
  tx: Tx,
  marketId: MarketId,
  actions: readonly ActionRow[],
  voided: Voided,
): Promise<void> {
  const first = actions[0] as ActionRow
  const setStatus = (status: 'REVERTED' | 'VOIDED', queueNos: readonly number[]) =>
    tx
      .updateTable('actions')
      .set({ status })
      .where('market_id', '=', marketId)
      .where('queue_no', 'in', queueNos)
      .execute()
  await setStatus(
    'VOIDED',
    actions.map(({ queue_no }) => queue_no),
  )
  if (first.nonce === null) return
  await setStatus('REVERTED', [first.queue_no])
  await tx
    .updateTable('relayer_transactions')
    .set({ error: `${voided.isUnnamed ? UNNAMED : ''}${voided.error}` })
    .where('relayer', '=', first.relayer)
    .where('nonce', '=', first.nonce)
    .where('status', '=', 'REVERTED')
    .execute()
}

async function save(
  tx: Tx,
  marketId: MarketId,
  head: ShardHead,
  actions: readonly ActionRow[],
  { voided, mined }: { readonly voided: Voided; readonly mined: VoidTransaction['mined'] },
): Promise<void> {
  await endActions(tx, marketId, actions, voided)
  const parts = actions.map(({ batch_id, part }) => ({ batch_id, part }))
  await sql`
    update fills set status = 'FAILED'
    from jsonb_to_recordset(${JSON.stringify(parts)}::jsonb) as x(batch_id bigint, part integer)
    where fills.market_id = ${marketId} and fills.batch_id = x.batch_id and fills.part = x.part
  `.execute(tx)
  await tx
    .updateTable('batches')
    .set({ status: 'VOIDED' })
    .where('market_id', '=', marketId)
    .where('batch_id', 'in', [...new Set(actions.map(({ batch_id }) => batch_id))])
    .execute()
  await writeOrders(tx, voided.orders)
  await writeMatched(tx, marketId, mined)
  await addReserved(tx, voided.reserved)
  const firstGiven = actions.find(({ action_id }) => action_id !== null)?.action_id
  if (firstGiven != null) {
    await tx
      .updateTable('markets')
      .set({ last_action_id: firstGiven - 1 })
      .where('market_id', '=', marketId)
      .execute()
  }
  if (voided.cancelOnly) {
    await tx.updateTable('markets').set({ mode: 'cancel_only' }).where('market_id', '=', marketId).execute()
  }
  await appendRows(tx, head, voided.rows)
}

export const createVoidStore = (db: Db): VoidStore => ({
  turn: (marketId, fence, fromQueueNo, work) =>
    db.transaction().execute(async (tx) => {
      const head = await lockShard(tx, marketShard(marketId))
      await checkFence(tx, fence)
      const actions = await unmined(tx, marketId)
      if (actions[0]?.queue_no !== fromQueueNo) return false
      const batches = await batchesOf(tx, marketId, actions)
      const accounts = new Set(batches.flatMap(({ fills }) => fills.map(({ user_id }) => user_id as UserId)))
      const funds = await lockFunds(tx, accounts)
      const mined = await positionsOf(tx, marketId, accounts, minedPosition)
      await work({
        batches,
        orders: await liveOrders(tx, marketId, accounts),
        mined,
        funds,
        isAfterUnnamed: await isAfterUnnamed(tx, marketId, fromQueueNo),
        save: (voided) => save(tx, marketId, head, actions, { voided, mined }),
      })
      return true
    }),
})

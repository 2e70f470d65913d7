/** A part's state out of the write side, and its changes into it. The caller holds the market's shard lock and the account rows. */
import { sql } from 'kysely'
import type { Tx } from '../../db/client.ts'
import type { PartSettled, PositionsMoved } from '../../domain/journal/journal-row.ts'
import { isConditional, type Side } from '../../domain/orders/order.ts'
import type { ClosingReason } from '../../domain/orders/order-state.ts'
import type { Position } from '../../domain/positions/position.ts'
import type { PartExpectation } from '../../domain/settlement/reconcile.ts'
import type {
  LedgerEntry,
  PartState,
  SettlingOrder,
  UnsettledFill,
} from '../../domain/settlement/settle-part.ts'
import type { BatchSettled } from '../../domain/settlement/settlement.ts'
import type { Address, Quote, Steps } from '../../domain/units.ts'

export async function loadPart(
  tx: Tx,
  marketId: number,
  settled: BatchSettled,
  users: ReadonlyMap<Address, number>,
): Promise<Omit<PartState, 'protective'>> {
  const fills = await waitingFills(tx, marketId, settled)
  return {
    users,
    fills,
    ledger: await loadLedger(tx, [...users.values()]),
    positions: await loadPositions(tx, marketId, users),
    orders: await ordersOfMakers(tx, marketId, settled),
  }
}

/** What waits here for this part. */
async function waitingFills(
  tx: Tx,
  marketId: number,
  { batchId, part }: Pick<BatchSettled, 'batchId' | 'part'>,
): Promise<UnsettledFill[]> {
  const rows = await tx
    .selectFrom('fills')
    .innerJoin('orders', 'orders.order_id', 'fills.order_id')
    .select([
      'fills.fill_id',
      'fills.order_id',
      'fills.side',
      'fills.steps',
      'fills.taker_steps',
      'fills.held',
    ])
    .select(['orders.maker', 'orders.salt'])
    .where('fills.market_id', '=', marketId)
    .where('fills.batch_id', '=', batchId)
    .where('fills.part', '=', part)
    .where('fills.status', 'in', ['MATCHED', 'SUBMITTED', 'RETRYING'])
    .orderBy('fills.place')
    .execute()
  return rows.map((row) => ({
    fillId: row.fill_id,
    orderId: row.order_id,
    maker: row.maker as Address,
    salt: BigInt(row.salt),
    side: row.side,
    steps: row.steps,
    takerSteps: row.taker_steps,
    held: row.held,
  }))
}

async function loadLedger(tx: Tx, userIds: readonly number[]): Promise<Map<number, LedgerEntry>> {
  const rows = await tx.selectFrom('accounts').selectAll().where('user_id', 'in', userIds).execute()
  return new Map(rows.map((row) => [row.user_id, { free: row.free, pending: row.pending_withdrawal }]))
}

export async function loadPositions(
  tx: Tx,
  marketId: number,
  users: ReadonlyMap<Address, number>,
): Promise<Map<Address, Position>> {
  const rows = await tx
    .selectFrom('positions')
    .selectAll()
    .where('market_id', '=', marketId)
    .where('user_id', 'in', [...users.values()])
    .execute()
  const byUser = new Map(rows.map((row) => [row.user_id, row]))
  const positions = [...users].flatMap(([maker, userId]): [Address, Position][] => {
    const row = byUser.get(userId)
    if (row === undefined) return []
    const { size, entry_notional, folded_margin, leverage } = row
    const amounts = { entryNotional: entry_notional as Quote, foldedMargin: folded_margin as Quote }
    return [[maker, { size: size as Steps, leverage, ...amounts }]]
  })
  return new Map(positions)
}

const ORDER_COLUMNS = [
  ...(['order_id', 'user_id', 'maker', 'salt', 'status', 'status_reason', 'quantity', 'filled'] as const),
  ...(['settling', 'closing_reason', 'reserved', 'held', 'type', 'triggered'] as const),
] as const

async function ordersOfMakers(tx: Tx, marketId: number, settled: BatchSettled): Promise<SettlingOrder[]> {
  const fills = settled.fills.filter(({ isForced }) => !isForced)
  const { rows } = await sql<{ order_id: string }>`
    select order_id from orders
    join unnest(${fills.map(({ maker }) => maker)}::text[], ${fills.map(({ salt }) => salt.toString())}::bigint[])
      as settled (maker, salt) using (maker, salt)
    where market_id = ${marketId}
  `.execute(tx)
  return loadOrders(
    tx,
    rows.map(({ order_id }) => order_id),
  )
}

export async function loadOrders(tx: Tx, orderIds: readonly string[]): Promise<SettlingOrder[]> {
  if (orderIds.length === 0) return []
  const rows = await tx.selectFrom('orders').select(ORDER_COLUMNS).where('order_id', 'in', orderIds).execute()
  return rows.map((row) => ({
    orderId: row.order_id,
    userId: row.user_id,
    maker: row.maker as Address,
    salt: BigInt(row.salt),
    status: row.status,
    statusReason: row.status_reason,
    quantity: row.quantity as Steps,
    filled: row.filled as Steps,
    settling: row.settling as Steps,
    closingReason: row.closing_reason as ClosingReason | null,
    reserved: row.reserved,
    held: row.held,
    waits: isConditional(row.type) && row.triggered === null,
  }))
}

/**
 * Conditional reduce-only orders, waiting or triggered, on the side that reduced a position which is closed now. Those accepted after
 * the batch that closed it (`asOf`) are for the next position.
 */
export async function loadProtective(
  tx: Tx,
  marketId: number,
  closed: ReadonlyMap<number, Side>,
  asOf: number,
): Promise<SettlingOrder[]> {
  if (closed.size === 0) return []
  const rows = await tx
    .selectFrom('orders')
    .select(['order_id', 'user_id', 'side'])
    .where('market_id', '=', marketId)
    .where('user_id', 'in', [...closed.keys()])
    .where('ended_at', 'is', null)
    .where('reduce_only', '=', true)
    .where('type', 'not in', ['MARKET', 'LIMIT'])
    .where('closing_reason', 'is', null)
    .where('accepted_at', '<=', asOf)
    .execute()
  const ids = rows.filter(({ user_id, side }) => closed.get(user_id) === side).map(({ order_id }) => order_id)
  return loadOrders(tx, ids)
}

/** What was sent, by our own books; null where they do not know the part. */
export async function expectationOf(
  tx: Tx,
  marketId: number,
  { batchId, part }: Pick<BatchSettled, 'batchId' | 'part'>,
  fills: readonly UnsettledFill[],
): Promise<PartExpectation | null> {
  if (fills.length === 0) return null
  const batch = await tx
    .selectFrom('batches')
    .select(['price', 'parts', 'as_of'])
    .where('market_id', '=', marketId)
    .where('batch_id', '=', batchId)
    .executeTakeFirst()
  const action = await tx
    .selectFrom('actions')
    .select(['action_id', 'as_of'])
    .where('market_id', '=', marketId)
    .where('batch_id', '=', batchId)
    .where('part', '=', part)
    .orderBy('queue_no', 'desc')
    .executeTakeFirst()
  if (batch === undefined) return null
  const { price, parts } = batch
  const terms = { batchId, part, parts, price, asOf: batch.as_of, actionId: action?.action_id ?? null }
  return { kind: 'part', ...terms, fills: fills.map((fill) => ({ ...fill, isForced: false })) }
}

/** Carries out what the row tells; `orders` are the orders as they are after it. */
export async function writePart(
  tx: Tx,
  marketId: number,
  row: PartSettled,
  orders: readonly SettlingOrder[],
): Promise<void> {
  await writePositions(tx, marketId, row, unmatchedAccounts(row))
  await writeAccounts(tx, row)
  await writeOrders(tx, row, orders)
  await writeFills(tx, marketId, row)
}

/** Positions that moved outside batches: nobody had matched that, so what is matched moves along. */
export async function writeMove(tx: Tx, marketId: number, row: PositionsMoved): Promise<void> {
  await writePositions(tx, marketId, row, new Set(row.positions.map(({ user_id }) => user_id)))
  for (const { user_id, free_delta } of row.balances) {
    await tx
      .updateTable('accounts')
      .set({ free: sql`free + ${signOf(row) * BigInt(free_delta)}::numeric` })
      .where('user_id', '=', user_id)
      .execute()
  }
}

const signOf = (row: { readonly rollback: boolean }): bigint => (row.rollback ? -1n : 1n)

/** Accounts with a fill that nobody here had matched: their matched position has not moved yet, and moves with the mined one. */
const unmatchedAccounts = ({ fills }: PartSettled): Set<number> =>
  new Set(fills.filter(({ matched }) => !matched).map(({ user_id }) => user_id))

async function writePositions(
  tx: Tx,
  marketId: number,
  row: Pick<PartSettled, 'positions' | 'rollback'>,
  unmatched: ReadonlySet<number>,
): Promise<void> {
  if (row.positions.length === 0) return
  const sign = signOf(row)
  const changes = row.positions.map((change) => ({
    user_id: change.user_id,
    size: Number(sign) * change.size_delta,
    entry_notional: (sign * BigInt(change.entry_notional_delta)).toString(),
    folded_margin: (sign * BigInt(change.folded_margin_delta)).toString(),
    leverage: row.rollback ? change.leverage_before : change.leverage_after,
    unmatched: unmatched.has(change.user_id),
  }))
  await sql`
    with changes as (
      select * from json_to_recordset(${JSON.stringify(changes)}::json) as x (
        user_id bigint, size bigint, entry_notional numeric, folded_margin numeric, leverage integer, unmatched boolean
      )
    )
    insert into positions as p (
      user_id, market_id, size, entry_notional, folded_margin, leverage,
      matched_size, matched_entry_notional, matched_folded_margin, matched_leverage
    )
    select user_id, ${marketId}, size, entry_notional, folded_margin, leverage,
      case when unmatched then size else 0 end, case when unmatched then entry_notional else 0 end,
      case when unmatched then folded_margin else 0 end, case when unmatched then leverage else 0 end
    from changes
    on conflict (user_id, market_id) do update set
      size = p.size + excluded.size,
      entry_notional = p.entry_notional + excluded.entry_notional,
      folded_margin = p.folded_margin + excluded.folded_margin,
      leverage = excluded.leverage,
      matched_size = p.matched_size + excluded.matched_size,
      matched_entry_notional = p.matched_entry_notional + excluded.matched_entry_notional,
      matched_folded_margin = p.matched_folded_margin + excluded.matched_folded_margin,
      matched_leverage = case when excluded.matched_size <> 0 then excluded.matched_leverage else p.matched_leverage end
  `.execute(tx)
}

async function writeAccounts(tx: Tx, row: PartSettled): Promise<void> {
  const changes = [
    ...row.fills.map((fill) => ({
      user_id: fill.user_id,
      free: (BigInt(fill.free_delta) + BigInt(fill.from_pending)).toString(),
      pending: (-BigInt(fill.from_pending)).toString(),
      reserved: (-BigInt(fill.held)).toString(),
    })),
    ...row.orders.map(({ user_id, reserved_delta }) => ({
      user_id,
      free: '0',
      pending: '0',
      reserved: reserved_delta,
    })),
  ]
  await sql`
    with changes as (
      select user_id, sum(free) as free, sum(pending) as pending, sum(reserved) as reserved
      from json_to_recordset(${JSON.stringify(changes)}::json)
        as x (user_id bigint, free numeric, pending numeric, reserved numeric)
      group by user_id
    )
    update accounts set
      free = accounts.free + ${signOf(row)}::numeric * changes.free,
      pending_withdrawal = accounts.pending_withdrawal + ${signOf(row)}::numeric * changes.pending,
      reserved = accounts.reserved + ${signOf(row)}::numeric * changes.reserved
    from changes where accounts.user_id = changes.user_id
  `.execute(tx)
}

async function writeOrders(tx: Tx, row: PartSettled, orders: readonly SettlingOrder[]): Promise<void> {
  if (orders.length === 0) return
  const states = orders.map((order) => ({
    order_id: order.orderId,
    status: order.status,
    status_reason: order.statusReason,
    closing_reason: order.closingReason,
    filled: order.filled,
    settling: order.settling,
    reserved: order.reserved.toString(),
    held: order.held.toString(),
    is_ended: order.statusReason !== null,
  }))
  await sql`
    update orders set
      status = x.status, status_reason = x.status_reason, closing_reason = x.closing_reason,
      filled = x.filled, settling = x.settling, reserved = x.reserved, held = x.held,
      openable = case when x.is_ended then 0 else openable end,
      ended_at = case when x.is_ended then coalesce(ended_at, ${row.at}::bigint) end
    from json_to_recordset(${JSON.stringify(states)}::json) as x (
      order_id text, status text, status_reason text, closing_reason text, filled bigint, settling bigint,
      reserved numeric, held numeric, is_ended boolean
    )
    where orders.order_id = x.order_id
  `.execute(tx)
}

/** Fills, their action and their batch. A part that was taken back is sent again, by the same transaction. */
async function writeFills(tx: Tx, marketId: number, row: PartSettled): Promise<void> {
  const ids = row.fills.filter(({ matched }) => matched).map(({ fill_id }) => fill_id)
  if (ids.length === 0) return
  const { batch_id, part } = row
  await tx
    .updateTable('fills')
    .set({ status: row.rollback ? 'RETRYING' : 'MINED' })
    .where('fill_id', 'in', ids)
    .execute()
  await tx
    .updateTable('actions')
    .set({ status: row.rollback ? 'SUBMITTED' : 'MINED' })
    .where('market_id', '=', marketId)
    .where('batch_id', '=', batch_id)
    .where('part', '=', part)
    .where('status', 'in', row.rollback ? ['MINED'] : ['SIGNED', 'SUBMITTED'])
    .execute()
  await sql`
    update batches set status = case
      when status = 'VOIDED' then status
      when parts = (select count(*) from actions where market_id = ${marketId} and batch_id = ${batch_id} and status = 'MINED')
      then 'SETTLED' else 'SETTLING' end
    where market_id = ${marketId} and batch_id = ${batch_id}
  `.execute(tx)
}

export async function confirmFills(tx: Tx, marketId: number, row: PartSettled): Promise<void> {
  await tx
    .updateTable('fills')
    .set({ status: 'CONFIRMED' })
    .where('market_id', '=', marketId)
    .where('batch_id', '=', row.batch_id)
    .where('part', '=', row.part)
    .where('status', '=', 'MINED')
    .execute()
}

/** The `orders` table: every statement that inserts, changes or ends orders. The caller holds the lock of the market's shard. */
import { CompiledQuery, type Selectable, sql } from 'kysely'
import type { OpenOrder } from '../domain/orders/open-order.ts'
import type { ClosingReason } from '../domain/orders/order-state.ts'
import type { Address, Millis, Quote, Seconds, Seq, Steps, Ticks, UserId } from '../domain/units.ts'
import type { Tx } from './client.ts'
import { toJson } from './json.ts'
import type { Statement } from './round-trip.ts'
import type { OrdersTable } from './schema.ts'
import { anyOf } from './values.ts'

export type OrderRow = Selectable<OrdersTable>

export const toOpenOrder = (row: OrderRow): OpenOrder => ({
  orderId: row.order_id,
  seq: row.seq as Seq,
  account: row.user_id as UserId,
  maker: row.maker as Address,
  salt: BigInt(row.salt),
  side: row.side,
  type: row.type,
  price: row.price as Ticks,
  quantity: row.quantity as Steps,
  leverage: row.leverage,
  reduceOnly: row.reduce_only,
  trigger: row.trigger as Ticks,
  expiration: row.expiration as Seconds,
  aliveUntil: row.alive_until as Seconds,
  triggered: row.triggered,
  acceptedAt: row.accepted_at as Millis,
  status: row.status,
  statusReason: row.status_reason,
  filled: row.filled as Steps,
  settling: row.settling as Steps,
  closingReason: row.closing_reason as ClosingReason | null,
  closedBy: row.closed_by,
  openable: row.openable as Steps,
  reservedPrice: row.reserved_price as Ticks,
  reserved: row.reserved as Quote,
  held: row.held as Quote,
  partialSlot: row.partial_slot,
  forced: row.forced,
  endedAt: row.ended_at as Millis | null,
})

/** The reduce-only orders of each of the accounts in the market that have not ended; accounts without any are left out. */
export async function countReduceOnly(
  tx: Tx,
  marketId: number,
  accounts: Iterable<UserId>,
): Promise<ReadonlyMap<UserId, number>> {
  const rows = await tx
    .selectFrom('orders')
    .select(['user_id', ({ fn }) => fn.countAll<number>().as('orders')])
    .where('market_id', '=', marketId)
    .where('user_id', '=', anyOf('bigint', accounts))
    .where('ended_at', 'is', null)
    .where('reduce_only', '=', true)
    .groupBy('user_id')
    .execute()
  return new Map(rows.map(({ user_id, orders }) => [user_id as UserId, Number(orders)]))
}

/** The columns of an order that leaves the book: it has ended, or it ends once its settling part is mined or voided. */
export interface EndedOrder {
  readonly order_id: string
  readonly status: string
  readonly status_reason: string | null
  readonly closing_reason: string | null
  /** The trader's reason for the cancel. */
  readonly note: string | null
  /** Null while the order waits for its settling part. */
  readonly ended_at: number | null
}

/** `order` as `leaveBook` returns it. */
export const toEndedOrder = (order: OpenOrder, note: string | null = null): EndedOrder => ({
  order_id: order.orderId,
  status: order.status,
  status_reason: order.statusReason,
  closing_reason: order.closingReason,
  note,
  ended_at: order.endedAt,
})

const END_ORDERS = `
  update orders o set
    status = e.status, status_reason = e.status_reason, closing_reason = e.closing_reason, note = e.note, ended_at = e.ended_at,
    openable = 0, reserved = 0, closed_by = null
  from jsonb_to_recordset($1::jsonb) as e (
    order_id text, status text, status_reason text, closing_reason text, note text, ended_at bigint
  )
  where o.order_id = e.order_id and o.order_id = any($2::text[])
`

/** Ends orders, or marks them as ending, and releases what their remainder reserves. */
export const endOrdersQuery = (ended: readonly EndedOrder[]): Statement => ({
  name: 'end-orders',
  text: END_ORDERS,
  values: [JSON.stringify(ended), ended.map(({ order_id }) => order_id)],
})

/** Ends orders as `leaveBook` returns them. The caller also changes `accounts.reserved` and appends the journal rows. */
export async function endOrders(tx: Tx, orders: readonly OpenOrder[]): Promise<void> {
  if (orders.length === 0) return
  const { text, values } = endOrdersQuery(orders.map((order) => toEndedOrder(order)))
  await tx.executeQuery(CompiledQuery.raw(text, [...values]))
}

/**
 * Writes orders as an auction or a void leaves them: matched or returned to the book, triggered, with a new reservation, or ended by the same
 * `leaveBook` as `endOrders`. One statement, because one batch may match an order and end its remainder.
 */
export async function updateOrders(tx: Tx, orders: readonly OpenOrder[]): Promise<void> {
  if (orders.length === 0) return
  await sql`
    update orders set
      status = x.status, status_reason = x."statusReason", settling = x.settling, closing_reason = x."closingReason",
      closed_by = x."closedBy", openable = x.openable, reserved_price = x."reservedPrice", reserved = x.reserved, held = x.held,
      partial_slot = x."partialSlot", ended_at = x."endedAt", seq = x.seq, triggered = x.triggered
    from jsonb_to_recordset(${toJson(orders)}::jsonb) as x(
      "orderId" text, status text, "statusReason" text, settling bigint, "closingReason" text, "closedBy" text, openable bigint,
      "reservedPrice" bigint, reserved numeric, held numeric, "partialSlot" integer, "endedAt" bigint, seq bigint, triggered jsonb
    )
    where orders.order_id = x."orderId"
  `.execute(tx)
}

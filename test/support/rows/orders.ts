/** Orders that a test reads or changes. */
import { type Selectable, sql } from 'kysely'
import type { Tx } from '../../../db/client.ts'
import { toJson } from '../../../db/json.ts'
import type { OrdersTable } from '../../../db/schema.ts'
import type { OpenOrder } from '../../../domain/orders/open-order.ts'
import type { ClosingReason } from '../../../domain/orders/order-state.ts'
import type { Address, Millis, Quote, Seconds, Seq, Steps, Ticks, UserId } from '../../../domain/units.ts'

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
  timeInForce: row.time_in_force,
  unused: row.unused as Steps,
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

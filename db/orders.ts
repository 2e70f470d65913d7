/** Stored orders as the domain knows them. */
import type { Selectable } from 'kysely'
import type { OpenOrder } from '../domain/orders/open-order.ts'
import type { ClosingReason } from '../domain/orders/order-state.ts'
import type { Address, Millis, Quote, Seconds, Seq, Steps, Ticks, UserId } from '../domain/units.ts'
import type { OrdersTable } from './schema.ts'

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
  openable: row.openable as Steps,
  reservedPrice: row.reserved_price as Ticks,
  reserved: row.reserved as Quote,
  held: row.held as Quote,
  partialSlot: row.partial_slot,
  endedAt: row.ended_at as Millis | null,
})

/** Converts state rows of orders to the types of the order rules. */
import type { OpenOrder } from '../orders/open-order.ts'
import { orderIdOf } from '../orders/order.ts'
import type { ExchangeState } from './state.ts'
import type { OrderRow } from './tables/orders.ts'

export function toOpenOrder(state: ExchangeState, row: OrderRow): OpenOrder {
  const orderId = orderIdOf(row.marketId, row.accepted)
  const { closedBy = null, triggered = null } = state.orderNotes.get(orderId) ?? {}
  return {
    orderId,
    seq: row.seq,
    account: row.account,
    maker: state.users.need(row.account).address,
    salt: BigInt(row.salt),
    side: row.side,
    type: row.type,
    price: row.price,
    quantity: row.quantity,
    leverage: row.leverage,
    reduceOnly: row.reduceOnly,
    timeInForce: row.timeInForce,
    unused: row.unused,
    trigger: row.trigger,
    expiration: row.expiration,
    aliveUntil: row.aliveUntil,
    triggered,
    acceptedAt: row.acceptedAt,
    status: row.status,
    statusReason: row.statusReason,
    filled: row.filled,
    settling: row.settling,
    closingReason: row.closingReason,
    closedBy,
    openable: row.openable,
    reservedPrice: row.reservedPrice,
    reserved: row.reserved,
    held: row.held,
    partialSlot: row.partialSlot,
    forced: row.forced,
    endedAt: row.endedAt,
  }
}

/**
 * An order of the state under its column names. The account's address, the fee and the average price are
 * stored elsewhere.
 */
import { orderIdOf } from '../orders/order.ts'
import type { OrderFacts } from './decide/orders/command.ts'

export const orderColumns = ({ order, signature, note }: OrderFacts) => ({
  order_id: orderIdOf(order.marketId, order.accepted),
  market_id: order.marketId,
  seq: order.seq,
  user_id: order.account,
  signer: signature.signer,
  hash: signature.hash,
  signature: signature.signature,
  salt: order.salt,
  side: order.side,
  type: order.type,
  price: order.price,
  quantity: order.quantity,
  unused: order.unused,
  trigger: order.trigger,
  leverage: order.leverage,
  reduce_only: order.reduceOnly,
  time_in_force: order.timeInForce,
  post_only: order.postOnly,
  bracket: order.bracket,
  replaces: order.replaces === 0 ? null : orderIdOf(order.marketId, order.replaces),
  expiration: order.expiration,
  alive_until: order.aliveUntil,
  status: order.status,
  status_reason: order.statusReason,
  note: note?.note ?? null,
  filled: order.filled,
  settling: order.settling,
  closing_reason: order.closingReason,
  closed_by: note?.closedBy ?? null,
  openable: order.openable,
  reserved_price: order.reservedPrice,
  reserved: order.reserved,
  held: order.held,
  partial_slot: order.partialSlot,
  accepted_at: order.acceptedAt,
  triggered: note?.triggered ?? null,
  ended_at: order.endedAt,
  forced: order.forced,
  client_order_id: signature.clientOrderId,
  builder: signature.builder,
})

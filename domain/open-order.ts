/** An accepted order as the write side keeps it, and the ways it changes outside its own settlement. */
import type { MarketRow } from './log.ts'
import type { OrderStatus, OrderType, Side, StatusReason } from './order.ts'
import type { Address, Millis, Quote, Seconds, Seq, Steps, Ticks, UserId } from './units.ts'

export interface OpenOrder {
  readonly orderId: string
  readonly seq: Seq
  readonly account: UserId
  readonly maker: Address
  readonly salt: bigint
  readonly side: Side
  readonly type: OrderType
  readonly price: Ticks
  readonly quantity: Steps
  readonly leverage: number
  readonly reduceOnly: boolean
  readonly expiration: Seconds
  readonly acceptedAt: Millis
  readonly status: OrderStatus
  readonly statusReason: StatusReason | null
  /** Mined. */
  readonly filled: Steps
  /** Matched and not yet mined. */
  readonly settling: Steps
  /** Set when it left the book while some of it settles: the reason it will end with. */
  readonly closingReason: StatusReason | null
  readonly openable: Steps
  readonly reservedPrice: Ticks
  /** For what is still in the book. */
  readonly reserved: Quote
  /** For what is settling. */
  readonly held: Quote
  readonly partialSlot: number | null
  readonly endedAt: Millis | null
}

/** An order after a change, and the log row that tells it. */
export interface OrderChange {
  readonly order: OpenOrder
  readonly row: MarketRow
}

export const remainingOf = ({ quantity, filled, settling }: OpenOrder): Steps =>
  (quantity - filled - settling) as Steps

/** In the book: can still be matched. */
export const isInBook = (order: OpenOrder): boolean =>
  order.status === 'OPEN' && order.closingReason === null && remainingOf(order) > 0

/**
 * Takes what is left of an order out of the book and frees its reservation. While some of it settles it stays, as
 * CANCEL_PENDING_FINALIZE, and ends with this reason once that is mined or unwound.
 */
export function leaveBook(order: OpenOrder, reason: StatusReason, at: Millis): OrderChange {
  const change = {
    order_id: order.orderId,
    user_id: order.account,
    reason,
    note: null,
    reserved_delta: (-order.reserved).toString(),
    at,
  }
  const left = { ...order, openable: 0 as Steps, reserved: 0n as Quote }
  if (order.settling > 0) {
    const status = 'CANCEL_PENDING_FINALIZE'
    return {
      order: { ...left, status, closingReason: reason },
      row: { kind: 'order_ending', status, ...change },
    }
  }
  const status = reason === 'EXPIRED' ? 'EXPIRED' : 'CANCELLED'
  return {
    order: { ...left, status, statusReason: reason, closingReason: null, endedAt: at },
    row: { kind: 'order_ended', status, ...change },
  }
}

/** Sets what the order holds back; null where nothing changes. */
export function reserve(
  order: OpenOrder,
  { openable, amount }: { readonly openable: Steps; readonly amount: Quote },
): OrderChange | null {
  if (order.openable === openable && order.reserved === amount) return null
  return {
    order: { ...order, openable, reserved: amount },
    row: {
      kind: 'reservation_changed',
      order_id: order.orderId,
      user_id: order.account,
      openable,
      reserved_price: order.reservedPrice,
      reserved_delta: (amount - order.reserved).toString(),
    },
  }
}

/** What an account holds back for the order. */
export const heldBack = ({ reserved, held }: OpenOrder): Quote => (reserved + held) as Quote

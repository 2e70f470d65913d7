/** An accepted order as the write side keeps it, and the ways it changes outside its own settlement. */

import { invariant } from '../invariant.ts'
import type { MarketRow, TriggerEvidence } from '../journal/journal-row.ts'
import type { Address, Millis, Quote, Seconds, Seq, Steps, Ticks, UserId } from '../units.ts'
import { isExpired, type OrderType, type Side, type StatusReason } from './order.ts'
import {
  type ClosingReason,
  isInBook,
  isTerminal,
  type OrderLife,
  transition,
  unmatched,
} from './order-state.ts'
import type { Reservable } from './reservation.ts'

export interface OpenOrder extends OrderLife {
  readonly orderId: string
  readonly seq: Seq
  readonly account: UserId
  readonly maker: Address
  readonly salt: bigint
  readonly side: Side
  readonly type: OrderType
  readonly price: Ticks
  readonly leverage: number
  readonly reduceOnly: boolean
  readonly trigger: Ticks
  readonly expiration: Seconds
  /** See `aliveUntil` in `order.ts`. */
  readonly aliveUntil: Seconds
  readonly acceptedAt: Millis
  /** What triggered it; null while it waits, and for orders that never wait. */
  readonly triggered: TriggerEvidence | null
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

/**
 * Takes what is left of an order out of the book and frees its reservation. While some of it settles it stays, and ends with
 * this reason once that is mined or voided.
 */
export function leaveBook(order: OpenOrder, reason: ClosingReason, at: Millis): OrderChange {
  const verdict = transition(order, { kind: 'close', reason })
  invariant(verdict.ok, 'an order leaves the book once')
  const { life } = verdict.value
  return {
    order: {
      ...life,
      openable: 0 as Steps,
      reserved: 0n as Quote,
      endedAt: isTerminal(life.status) ? at : null,
    },
    row: endingRow(life, reason, at),
  }
}

/** What tells that an order has left the book, or has ended. `order` as it is then, but for its reservation, which the row frees. */
export function endingRow(order: OpenOrder, reason: StatusReason, at: Millis): MarketRow {
  const { status } = order
  const change = {
    order_id: order.orderId,
    user_id: order.account,
    reason,
    note: null,
    reserved_delta: (-order.reserved).toString(),
    at,
  }
  return isTerminal(status)
    ? { kind: 'order_ended', status, ...change }
    : { kind: 'order_ending', status, ...change }
}

export interface Trigger {
  /** Of the row that tells it: its place in the book. */
  readonly seq: Seq
  readonly evidence: TriggerEvidence
  readonly reservedPrice: Ticks
  readonly openable: Steps
  readonly amount: Quote
}

/** The mark has reached the order's trigger: it enters the book as the newest order, with a reservation of its own. */
export function triggerOrder(order: OpenOrder, trigger: Trigger): OrderChange {
  const { seq, evidence, reservedPrice, openable, amount } = trigger
  const verdict = transition(order, { kind: 'trigger' })
  invariant(verdict.ok, 'an order is triggered while it waits')
  return {
    order: { ...verdict.value.life, seq, triggered: evidence, reservedPrice, openable, reserved: amount },
    row: {
      kind: 'order_triggered',
      order_id: order.orderId,
      user_id: order.account,
      ...evidence,
      openable,
      reserved_price: reservedPrice,
      reserved_delta: (amount - order.reserved).toString(),
    },
  }
}

/** When it entered the book. A market order waits for a batch from then. */
export const enteredBookAt = ({ acceptedAt, triggered }: OpenOrder): Millis =>
  triggered === null ? acceptedAt : (triggered.at as Millis)

/** Why time has ended the order: by itself, or with its session key. */
export const expiryReason = ({ expiration }: OpenOrder, at: Millis): ClosingReason =>
  isExpired(expiration, at) ? 'EXPIRED' : 'SIGNER_EXPIRED'

/** An order that takes part in reservations: it can still be filled, now or once it is triggered. */
export const isReservable = (order: OpenOrder): boolean =>
  isInBook(order) || order.status === 'PENDING_TRIGGER'

export const reservable = (order: OpenOrder): Reservable => ({
  seq: order.seq,
  side: order.side,
  limit: order.price,
  leverage: order.leverage,
  reduceOnly: order.reduceOnly,
  remaining: unmatched(order),
  reservedPrice: order.reservedPrice,
})

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
export const withheldBy = ({ reserved, held }: OpenOrder): Quote => (reserved + held) as Quote

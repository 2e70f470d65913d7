/** An accepted order as stored in the database, and its changes other than settlement. */

import { invariant } from '../invariant.ts'
import type { MarketRow, OrderEnded, OrderEnding, TriggerEvidence } from '../journal/journal-row.ts'
import type { Address, Millis, Quote, Seconds, Seq, Steps, Ticks, UserId } from '../units.ts'
import { isExpired, type OrderType, type Side, type StatusReason, type TimeInForce } from './order.ts'
import {
  type ClosingReason,
  isInBook,
  isTerminal,
  isWaiting,
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
  readonly timeInForce: TimeInForce
  /** Signed steps beyond `quantity`, which the order must not fill. */
  readonly unused: Steps
  readonly trigger: Ticks
  readonly expiration: Seconds
  /** See `aliveUntil` in `order.ts`. */
  readonly aliveUntil: Seconds
  readonly acceptedAt: Millis
  /** Trigger evidence; null while the order waits, and for orders without a trigger. */
  readonly triggered: TriggerEvidence | null
  readonly openable: Steps
  readonly reservedPrice: Ticks
  /** Wei reserved for the steps in the book. */
  readonly reserved: Quote
  /** Wei held for the settling steps. */
  readonly held: Quote
  readonly partialSlot: number | null
  /** True for a forced order. It has no signature; its salt is its number. */
  readonly forced: boolean
  readonly endedAt: Millis | null
}

/** An order after a change, and the journal row that records the change. */
export interface OrderChange {
  readonly order: OpenOrder
  readonly row: MarketRow
}

/** Fields of an order that its end uses. */
export type Leaving = OrderLife & Pick<OpenOrder, 'orderId' | 'account' | 'openable' | 'reserved' | 'endedAt'>

/**
 * Removes the remaining steps of an order from the book and releases their reservation.
 * If some steps are settling, the order ends with `reason` once they are mined or voided.
 */
export function leaveBook<Order extends Leaving>(
  order: Order,
  reason: ClosingReason,
  at: Millis,
): { readonly order: Order; readonly row: OrderEnding | OrderEnded } {
  const verdict = transition(order, { kind: 'close', reason })
  invariant(verdict.ok, 'an order that is closed has not ended, and does not end for another reason')
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

/**
 * Journal row of an order that has left the book or has ended.
 * `order` is the order after the change, except that `reserved` is the earlier reservation, which the row releases.
 */
export function endingRow(
  order: Pick<Leaving, 'status' | 'orderId' | 'account' | 'reserved'>,
  reason: StatusReason,
  at: Millis,
): OrderEnding | OrderEnded {
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
  /** Sequence of the `order_triggered` row; it becomes the order's seq in the book. */
  readonly seq: Seq
  readonly evidence: TriggerEvidence
  readonly reservedPrice: Ticks
  readonly openable: Steps
  readonly amount: Quote
}

/** Triggers a waiting order: it enters the book as the newest order, with a new reservation. */
export function triggerOrder(order: OpenOrder, trigger: Trigger): OrderChange {
  const { seq, evidence, reservedPrice, openable, amount } = trigger
  const verdict = transition(order, { kind: 'trigger' })
  invariant(verdict.ok, 'a triggered order was waiting')
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

/** Time at which the order entered the book. A market order's wait for a batch starts here. */
export const enteredBookAt = ({
  acceptedAt,
  triggered,
}: {
  readonly acceptedAt: Millis
  readonly triggered: Pick<TriggerEvidence, 'at'> | null
}): Millis => (triggered === null ? acceptedAt : (triggered.at as Millis))

/** Reason of an expiry: the order's own expiration, or the expiry of its session key. */
export const expiryReason = ({ expiration }: OpenOrder, at: Millis): ClosingReason =>
  isExpired(expiration, at) ? 'EXPIRED' : 'SIGNER_EXPIRED'

/** Whether reservations include the order: it can still fill, now or after its trigger. */
export const isReservable = (order: OpenOrder): boolean => isInBook(order) || isWaiting(order)

export const reservable = (
  order: Pick<
    OpenOrder,
    | 'seq'
    | 'side'
    | 'price'
    | 'leverage'
    | 'reduceOnly'
    | 'reservedPrice'
    | 'quantity'
    | 'filled'
    | 'settling'
  >,
): Reservable => ({
  seq: order.seq,
  side: order.side,
  limit: order.price,
  leverage: order.leverage,
  reduceOnly: order.reduceOnly,
  remaining: unmatched(order),
  reservedPrice: order.reservedPrice,
})

/** Sets the order's reservation; null if nothing changes. */
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

/**
 * Wei withheld from the account for the order: `reserved` for steps in the book plus `held` for settling
 * steps.
 */
export const withheldBy = ({ reserved, held }: OpenOrder): Quote => (reserved + held) as Quote

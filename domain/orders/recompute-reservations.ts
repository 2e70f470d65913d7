/**
 * Recomputes the reservations of an account's live orders after a position change. Orders that the account
 * can no longer pay for are cancelled.
 */
import type { Cancel } from '../auction/clearing.ts'
import type { MarketSpec } from '../market/market.ts'
import type { Millis, Quote, Seq, Steps } from '../units.ts'
import { leaveBook, type OpenOrder, reservable, reserve } from './open-order.ts'
import type { OrderChanges } from './order-changes.ts'
import { newestToCancel, type Reservable, type Reservation, reservationsOf } from './reservation.ts'

/** Available wei of an account. `reserved` is the sum over all markets. */
export interface Funds {
  readonly free: Quote
  readonly reserved: Quote
}

export interface RecomputedReservations {
  readonly reservations: ReadonlyMap<Seq, Reservation>
  /** Orders that the account can no longer pay for, newest first. */
  readonly cancels: readonly Cancel[]
}

/**
 * New reservations after the account's matched position became `size`; cancels the newest orders that it cannot pay.
 * `before`: earlier reservations of these orders, part of `funds.reserved`.
 */
export function recomputeReservations(
  spec: MarketSpec,
  size: Steps,
  orders: readonly Reservable[],
  { funds, before }: { readonly funds: Funds; readonly before: Quote },
): RecomputedReservations {
  const reservations = reservationsOf(spec, size, orders)
  const budget = (funds.free - (funds.reserved - before)) as Quote
  const cancels = newestToCancel(reservations, budget).map(
    (seq): Cancel => ({ seq, reason: 'INSUFFICIENT_MARGIN' }),
  )
  return { reservations: new Map(reservations.map((reservation) => [reservation.seq, reservation])), cancels }
}

export interface ReserveLiveInput {
  readonly spec: MarketSpec
  readonly at: Millis
  /** Position from which the account's orders reserve. */
  readonly size: Steps
  /** Orders that may reserve, as stored in `changes`. */
  readonly live: readonly OpenOrder[]
  readonly funds: Funds
  readonly before: Quote
}

/**
 * Recomputes the reservations of an account in `changes`. Orders that it cannot pay for end, newest first.
 */
export function reserveLive(
  changes: OrderChanges,
  { spec, at, size, live, ...terms }: ReserveLiveInput,
): void {
  const { reservations, cancels } = recomputeReservations(spec, size, live.map(reservable), terms)
  const unaffordable = new Set(cancels.map(({ seq }) => seq))
  for (const { seq } of cancels) changes.put(leaveBook(changes.get(seq), 'INSUFFICIENT_MARGIN', at))
  for (const [seq, reservation] of reservations) {
    if (!unaffordable.has(seq)) changes.putIf(reserve(changes.get(seq), reservation))
  }
}

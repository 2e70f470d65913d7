/**
 * Recomputes the reservations of an account's live orders after its position has changed, and cancels those
 * that it can no longer pay for.
 */
import type { Cancel } from '../auction/clearing.ts'
import type { MarketSpec } from '../market/market.ts'
import type { Quote, Seq, Steps } from '../units.ts'
import { newestToCancel, type Reservable, type Reservation, reservationsOf } from './reservation.ts'

/** Wei that an account can use, read under its row lock. `reserved` covers all markets. */
export interface Funds {
  readonly free: Quote
  readonly reserved: Quote
}

export interface RecomputedReservations {
  readonly reservations: ReadonlyMap<Seq, Reservation>
  /** Orders that the account can no longer pay for, the newest first. */
  readonly cancels: readonly Cancel[]
}

/**
 * New reservations for an account's open and waiting orders in a market where its matched position has become
 * `size`. `before` is the amount reserved for these orders so far, which `funds.reserved` includes. If the
 * account cannot pay for all of them, the newest are cancelled.
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

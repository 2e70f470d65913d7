/** What an account's live orders hold back after its position has moved, and which of them it can no longer pay for. */
import type { Cancel } from '../auction/clearing.ts'
import type { MarketSpec } from '../market/market.ts'
import type { Quote, Seq, Steps } from '../units.ts'
import { newestToCancel, type Reservable, type Reservation, reservationsOf } from './reservation.ts'

/** What an account can pay with, under its row lock. `reserved` covers all markets. */
export interface Funds {
  readonly free: Quote
  readonly reserved: Quote
}

export interface RecomputedReservations {
  readonly reservations: ReadonlyMap<Seq, Reservation>
  /** No longer paid for: the newest first. */
  readonly cancels: readonly Cancel[]
}

/**
 * New reservations for the orders of an account, open and waiting, in a market where its matched position has become `size`. `before`:
 * what these orders held back until now, as part of `funds.reserved`. Where the account cannot pay for all, the newest orders are cancelled.
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

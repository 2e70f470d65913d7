/**
 * One auction of a market: clears its book on the turn's basis.
 * Accounts with more changes than a step may write are deferred.
 */
import type { Book, RestingOrder } from '../book/book.ts'
import type { LiveBook } from '../book/live-book.ts'
import { scheduleAt } from '../market/price-protection.ts'
import type { Funds } from '../orders/recompute-reservations.ts'
import type { Position } from '../positions/position.ts'
import { fundingIndexAt } from '../prices/funding-state.ts'
import type { Quote, Seq, UserId } from '../units.ts'
import type { BatchBasis } from './action-basis.ts'
import { type BatchOutcome, clearAndMatch, clearForced } from './batch.ts'
import { type BatchDecision, sideChanges } from './batch-plan.ts'
import { type Exclusions, eligibility } from './candidates.ts'
import type { Cancel } from './clearing.ts'
import { type Deferrals, deferBeyond, exclude } from './deferral.ts'
import type { MarketSnapshot } from './market-snapshot.ts'
import { MAX_ORDERS_PER_TURN } from './turn-bound.ts'

/** Funds of an account without a row. */
export const NO_FUNDS: Funds = { free: 0n as Quote, reserved: 0n as Quote }

/**
 * Maximum attempts of one turn.
 * Each attempt is a separate step, and other commands of the market run between steps. The next turn
 * continues without the same accounts.
 */
export const ATTEMPTS = 4

export interface AuctionTerms {
  readonly snapshot: Pick<MarketSnapshot, 'priceProtection' | 'pauseEndsAt' | 'funding' | 'touched'>
  readonly standingSeq: Seq
  /** Orders that end because of time, or because the market has closed. */
  readonly due: readonly Cancel[]
  readonly deferrals: Deferrals
  /** Market pool once every queued action is mined. */
  readonly pool: Quote
}

/** Null if only forced orders may match and the book has none. */
export function clearBook(
  { book }: Pick<LiveBook, 'book'>,
  positions: (account: UserId) => Position,
  basis: BatchBasis,
  auction: AuctionTerms,
): BatchOutcome | null {
  const { report, asOf, terms, matching } = basis
  const { snapshot, standingSeq, pool } = auction
  const excluded = exclusionsOf(auction)
  const outcome = (matching === 'forced' ? clearForced : clearAndMatch)({
    spec: terms.charging,
    book,
    asOf,
    standingSeq,
    priceProtection: scheduleAt(snapshot.priceProtection, asOf).inForce,
    positions,
    pool,
    pauseEndsAt: snapshot.pauseEndsAt,
    fundingIndex: fundingIndexAt(snapshot.funding, asOf),
    oracle: report.price,
    excluded,
  })
  return outcome && { ...outcome, remainders: iocRemainders(book, basis, excluded, outcome) }
}

const exclusionsOf = ({ snapshot, due, deferrals }: AuctionTerms): Exclusions => ({
  // Positions of touched accounts are unknown until the touching actions are mined.
  accounts: new Set([...snapshot.touched, ...deferrals.excluded]),
  // These orders end now. Some are still valid at `asOf`, which can be earlier.
  orders: new Set(due.map(({ seq }) => seq)),
})

/**
 * `ioc` orders that took part and that the auction neither fills nor ends.
 * An order that the auction leaves out waits for the next auction. In an auction of forced orders, only
 * filled orders took part.
 */
function iocRemainders(
  book: Book,
  { asOf, terms, matching }: BatchBasis,
  excluded: Exclusions,
  { clearing, refused }: BatchOutcome,
): Cancel[] {
  const ioc = book.iocOrders()
  if (ioc.length === 0) return []
  const fills = new Map(clearing.fills.map(({ seq, remaining }) => [seq, remaining]))
  const left = new Set([
    ...clearing.cancels.map(({ seq }) => seq),
    ...refused.flatMap(({ orders }) => orders),
  ])
  const isEligible = eligibility(asOf, excluded, terms.charging.maxLeverage)
  const ends = (order: RestingOrder): boolean => {
    const remaining = fills.get(order.seq)
    if (remaining !== undefined) return remaining > 0 && !left.has(order.seq)
    return matching === 'all' && !left.has(order.seq) && isEligible(order)
  }
  return ioc.filter(ends).map(({ seq }) => ({ seq, reason: 'IOC_REMAINDER' }))
}

/** Accounts to leave out of a repeated auction; null if the result may be written. */
export function deferredBy(
  { clearing, unresolved }: BatchOutcome,
  decision: BatchDecision,
  live: LiveBook,
  deferrals: Deferrals,
): Deferrals | null {
  if (unresolved !== null) return exclude(deferrals, unresolved)
  const forced = clearing.inputs.orders.filter((order) => order.forced).map(({ account }) => account)
  const bound = { most: MAX_ORDERS_PER_TURN, forced: new Set(forced) }
  return deferBeyond(bound, sideChanges(decision, live), deferrals)
}

/** The writable result, and the accounts with funds that the result needs. */
export function resolvedOutcome(
  live: LiveBook,
  due: readonly Cancel[],
  outcome: BatchOutcome | null,
): { readonly resolved: BatchOutcome | null; readonly accounts: ReadonlySet<UserId> } {
  const resolved = outcome?.unresolved === null ? outcome : null
  const ends = [...due, ...(resolved?.clearing.cancels ?? []), ...(resolved?.remainders ?? [])]
  const ended = ends.map(({ seq }) => live.get(seq)?.account as UserId)
  return { resolved, accounts: new Set([...(resolved?.matched?.positions.keys() ?? []), ...ended]) }
}

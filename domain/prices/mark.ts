/** Computes the mark price, which values positions for display and triggers conditional orders. */

import type { Book, Level } from '../book/book.ts'
import { type Band, priceBand, tickFloor } from '../market/band.ts'
import { type MarketSpec, priceOf } from '../market/market.ts'
import { type Millis, maxOf, minOf, type Price, type Steps, type Ticks } from '../units.ts'

/** Time constant of the moving average of (mid - oracle price). */
const BASIS_MS = 150_000
/** A clearing price of this age or more is not used for the mark. */
const RECENT_MS = 60_000
/** A spread is wide above oracle price / 50 (2 %), but never below four ticks. */
const WIDE_SPREAD = 50n
const NARROW_TICKS = 4
/** A best level is thin below this many orders of minimum size. */
const MIN_DEPTH_ORDERS = 5

/**
 * Moving average of (mid - oracle price), in wei of price. It moves towards 0 while the book has no usable
 * quotes.
 */
export interface MarkBasis {
  readonly value: bigint
  readonly at: Millis
}

/** The market's last clearing price. It is not used once it is 60 s old. */
export interface ClearedPrice {
  readonly price: Ticks
  readonly at: Millis
}

export interface MarkPriceInput {
  readonly spec: MarketSpec
  readonly oracle: Price
  readonly book: Book
  readonly last: ClearedPrice | null
  readonly now: Millis
}

/** The best buy and sell prices; null if the book is one-sided, crossed, wide or thin. */
export function bestQuotes({
  spec,
  oracle,
  book,
}: MarkPriceInput): { readonly bid: Price; readonly ask: Price } | null {
  const bid = book.best('LONG')
  const ask = book.best('SHORT')
  if (bid === undefined || ask === undefined || bid.price >= ask.price) return null
  const widest = Math.max(NARROW_TICKS, tickFloor(spec, (oracle / WIDE_SPREAD) as Price))
  if (ask.price - bid.price > widest || isThin(spec, bid) || isThin(spec, ask)) return null
  return { bid: priceOf(spec, bid.price), ask: priceOf(spec, ask.price) }
}

const isThin = (spec: MarketSpec, level: Level): boolean =>
  level.steps < ((spec.minQuantity * MIN_DEPTH_ORDERS) as Steps)

/** The moving average after a sample of the book at `now`. */
export function nextMarkBasis(basis: MarkBasis | null, input: MarkPriceInput): MarkBasis {
  const best = bestQuotes(input)
  const sample = best === null ? 0n : (best.bid + best.ask) / 2n - input.oracle
  if (basis === null) return { value: 0n, at: input.now }
  const elapsed = BigInt(minOf(maxOf(0, input.now - basis.at), BASIS_MS))
  const value = basis.value + ((sample - basis.value) * elapsed) / BigInt(BASIS_MS)
  return { value, at: input.now }
}

/**
 * The mark price within the band: the median of oracle price + basis, of median(best buy, best sell, recent
 * clearing price), and of the oracle price. If the book has no usable quotes, the oracle price.
 */
export function markPrice(input: MarkPriceInput, basis: MarkBasis): Price {
  const { spec, oracle, last, now } = input
  const best = bestQuotes(input)
  if (best === null) return oracle
  const recent =
    last !== null && now - last.at < RECENT_MS ? priceOf(spec, last.price) : (best.bid + best.ask) / 2n
  const traded = median(best.bid, best.ask, recent)
  return inBand(spec, priceBand(spec, oracle), median(oracle + basis.value, traded, oracle))
}

const median = (a: bigint, b: bigint, c: bigint): bigint => maxOf(minOf(a, b), minOf(maxOf(a, b), c))

function inBand(spec: MarketSpec, { lo, hi }: Band, price: bigint): Price {
  const edge = (ticks: Ticks): Price => priceOf(spec, ticks)
  return minOf(maxOf(price, edge(lo)), edge(hi)) as Price
}

/** The mark price: what unrealised profit is shown at and what triggers conditional orders. */

import type { Reference } from '../auction/clearing.ts'
import type { Book, Level } from '../book/book.ts'
import { type Band, priceBand, tickFloor } from '../market/band.ts'
import { type MarketSpec, priceOf } from '../market/market.ts'
import { type Millis, maxOf, minOf, type Price, type Steps, type Ticks } from '../units.ts'

/** Time constant of the average distance between the middle of the book and the oracle price. */
const BASIS_MS = 150_000
/** A clearing price older than this says nothing about now. */
const RECENT_MS = 60_000
/** A spread above 2 % of the oracle price, but never below four ticks, is wide. */
const WIDE_SPREAD = 50n
const NARROW_TICKS = 4
/** A best level below this many of the smallest orders is thin. */
const MIN_DEPTH_ORDERS = 5

/** Average of (mid - oracle) over the last minutes, in wei of price; moves towards 0 while the book says nothing. */
export interface MarkBasis {
  readonly value: bigint
  readonly at: Millis
}

export interface MarkPriceInput {
  readonly spec: MarketSpec
  readonly oracle: Price
  readonly book: Book
  readonly last: Reference | null
  readonly now: Millis
}

/** Best buy and best sell where the book is two-sided, close and deep enough to mean something. */
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

/** The basis after a look at the book at `now`. */
export function nextMarkBasis(basis: MarkBasis | null, input: MarkPriceInput): MarkBasis {
  const best = bestQuotes(input)
  const sample = best === null ? 0n : (best.bid + best.ask) / 2n - input.oracle
  if (basis === null) return { value: 0n, at: input.now }
  const elapsed = BigInt(minOf(maxOf(0, input.now - basis.at), BASIS_MS))
  const value = basis.value + ((sample - basis.value) * elapsed) / BigInt(BASIS_MS)
  return { value, at: input.now }
}

/**
 * Median of oracle price plus basis, of the middle of (best buy, best sell, recent clearing price), and of the oracle price.
 * The oracle price itself where the book is one-sided, wide or thin. Within the band.
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

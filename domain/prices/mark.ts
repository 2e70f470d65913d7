/** Computes the mark price, which values positions for display and triggers conditional orders. */

import { eligibility, NO_EXCLUSIONS } from '../auction/candidates.ts'
import { type BestQuote, bestQuote, type QuoteInput } from '../auction/quotes.ts'
import { riskTermsAt } from '../auction/tranches.ts'
import type { Book } from '../book/book.ts'
import { type Band, priceBand, tickFloor } from '../market/band.ts'
import { type MarketSpec, priceOf } from '../market/market.ts'
import type { Side } from '../orders/order.ts'
import type { Position } from '../positions/position.ts'
import {
  type FundingIndex,
  type Millis,
  maxOf,
  minOf,
  type Price,
  type Steps,
  type Ticks,
  type UserId,
} from '../units.ts'

/** Time constant of the moving average of (mid - oracle price). */
const BASIS_MS = 150_000
/** Clearing prices of this age or older are not used for the mark. */
const RECENT_MS = 60_000
/** A spread is wide above oracle price / 50 (2 %), but never below four ticks. */
const WIDE_SPREAD = 50n
const NARROW_TICKS = 4
/** A best level with less than this many orders of minimum size is thin. */
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
  /** See `bestPrices`. */
  readonly best: BestPrices | null
  readonly last: ClearedPrice | null
  readonly now: Millis
}

/** A book, and the inputs that decide which of its steps can execute. */
export interface BookQuotes {
  readonly spec: MarketSpec
  readonly oracle: Price
  readonly book: Book
  /** Matched position of an account. */
  readonly positions: (account: UserId) => Position
  readonly fundingIndex: FundingIndex
  /**
   * Accounts whose orders take part in no auction now: their quotes cannot be filled, so they do not count.
   */
  readonly excluded: ReadonlySet<UserId>
  readonly now: Millis
}

/** The best buy and sell prices of a book. */
export interface BestPrices {
  readonly bid: Price
  readonly ask: Price
}

/** The quotes of the orders that can execute in an auction at `now`. */
export function quotesOf({ book, excluded, now, ...state }: BookQuotes): QuoteInput {
  const terms = riskTermsAt(state)
  const isQuoted = eligibility(now, { ...NO_EXCLUSIONS, accounts: excluded }, state.spec.maxLeverage)
  return { book, terms, isQuoted }
}

/**
 * The best prices at which orders of the book can execute in an auction at `now`; null if the book is
 * one-sided, crossed, wide or thin there.
 */
export function bestPrices(input: BookQuotes): BestPrices | null {
  const { spec, oracle } = input
  const quotes = quotesOf(input)
  const enough = (spec.minQuantity * MIN_DEPTH_ORDERS) as Steps
  const best = (side: Side): BestQuote | null => bestQuote(quotes, side, enough)
  const [bid, ask] = [best('LONG'), best('SHORT')]
  if (bid === null || ask === null || bid.limit >= ask.limit) return null
  const widest = Math.max(NARROW_TICKS, tickFloor(spec, (oracle / WIDE_SPREAD) as Price))
  if (ask.limit - bid.limit > widest || bid.steps < enough || ask.steps < enough) return null
  return { bid: priceOf(spec, bid.limit), ask: priceOf(spec, ask.limit) }
}

/** The moving average after a sample of the book at `now`. */
export function nextMarkBasis(basis: MarkBasis | null, input: MarkPriceInput): MarkBasis {
  const { best } = input
  const sample = best === null ? 0n : (best.bid + best.ask) / 2n - input.oracle
  if (basis === null) return { value: 0n, at: input.now }
  const elapsed = BigInt(minOf(maxOf(0, input.now - basis.at), BASIS_MS))
  const value = basis.value + ((sample - basis.value) * elapsed) / BigInt(BASIS_MS)
  return { value, at: input.now }
}

/**
 * The mark in the band: median of oracle price + basis, book price and oracle price; the oracle price without usable
 * quotes. Book price: median of best buy, best sell and a recent clearing price.
 */
export function markPrice(input: MarkPriceInput, basis: MarkBasis): Price {
  const { spec, oracle, best, last, now } = input
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

/**
 * Computes protection prices: how far from the standing book a market order may fill. Without them, one small order in
 * the batch could move its price to the band edge.
 */

import type { Book, RestingOrder } from '../book/book.ts'
import { type Band, tickCeil, tickFloor } from '../market/band.ts'
import { type MarketSpec, priceOf } from '../market/market.ts'
import type { Side } from '../orders/order.ts'
import {
  maxOf,
  minOf,
  mulDivDown,
  mulDivUp,
  ONE,
  type Price,
  type Rate,
  type Seq,
  type Ticks,
  type UserId,
} from '../units.ts'
import type { Protection } from './clearing.ts'
import { type LimitQuote, limitQuotes } from './quotes.ts'
import type { RiskTerms } from './tranches.ts'

/** Size of a reference, in orders of minimum size. One step therefore cannot set the reference price. */
const REFERENCE_MIN_ORDERS = 5
/** Width factor of triggered orders, so that stops still close, and of forced orders at first. */
const WIDE = 3n

export interface ProtectionInput {
  readonly terms: RiskTerms
  readonly book: Book
  readonly isEligible: (order: RestingOrder) => boolean
  /** Journal head at the market's previous auction: orders up to it were in the book. */
  readonly standingSeq: Seq
  readonly width: Rate
}

export interface Protections {
  readonly bySeq: ReadonlyMap<Seq, Protection>
  /** Standing orders that determined the references: sells, then buys. */
  readonly ladder: readonly RestingOrder[]
}

/**
 * Computes the protection of every market order of a batch. It reads only as much of the book as the
 * references need.
 */
export function protectionsOf(
  input: ProtectionInput,
  marketBuys: readonly RestingOrder[],
  marketSells: readonly RestingOrder[],
): Protections {
  const buys = protectSide(input, marketBuys, 'SHORT')
  const sells = protectSide(input, marketSells, 'LONG')
  const protections = [...buys.protections, ...sells.protections]
  return {
    bySeq: new Map(protections.map((protection) => [protection.seq, protection])),
    ladder: [...buys.ladder, ...sells.ladder],
  }
}

interface ProtectedSide {
  readonly protections: readonly Protection[]
  readonly ladder: readonly RestingOrder[]
}

function protectSide(
  input: ProtectionInput,
  orders: readonly RestingOrder[],
  quoteSide: Side,
): ProtectedSide {
  if (orders.length === 0) return { protections: [], ladder: [] }
  const quotes = standingQuotes(input, quoteSide, new Set(orders.map(({ account }) => account)))
  const levels = new QuoteLevels(input.terms.spec, quotes)
  return {
    protections: orders.map((order) => protect(input, order, levels.without(order.account))),
    ladder: [...new Set(quotes.map(({ order }) => order))],
  }
}

/** Standing quotes of one side, enough for every taker's reference without the taker's own quotes. */
function standingQuotes(input: ProtectionInput, side: Side, takers: ReadonlySet<UserId>): LimitQuote[] {
  const { isEligible, standingSeq, terms } = input
  const needed = referenceSteps(terms.spec)
  const quotes: LimitQuote[] = []
  const ofTaker = new Map<UserId, number>()
  let total = 0
  let largestOfTaker = 0
  const isQuoted = (order: RestingOrder): boolean => order.seq <= standingSeq && isEligible(order)
  for (const quote of limitQuotes({ ...input, isQuoted }, side)) {
    const { order, steps } = quote
    quotes.push(quote)
    total += steps
    if (takers.has(order.account)) {
      const own = (ofTaker.get(order.account) ?? 0) + steps
      ofTaker.set(order.account, own)
      largestOfTaker = Math.max(largestOfTaker, own)
    }
    if (total - largestOfTaker >= needed) break
  }
  return quotes
}

/** Steps of standing quotes that determine a reference price. */
export const referenceSteps = (spec: MarketSpec): number => spec.minQuantity * REFERENCE_MIN_ORDERS

interface ReferenceLevels {
  readonly best: Ticks
  readonly level: Ticks
}

/** Best quote and reference level per account, excluding the account's own quotes. */
class QuoteLevels {
  readonly #needed: number
  readonly #quotes: readonly LimitQuote[]
  readonly #quoting: ReadonlySet<UserId>
  readonly #known = new Map<UserId | null, ReferenceLevels | null>()

  constructor(spec: MarketSpec, quotes: readonly LimitQuote[]) {
    this.#needed = referenceSteps(spec)
    this.#quotes = quotes
    this.#quoting = new Set(quotes.map(({ order }) => order.account))
  }

  /** Null if the quotes of other accounts do not reach the reference size. */
  without(account: UserId): ReferenceLevels | null {
    const key = this.#quoting.has(account) ? account : null
    let levels = this.#known.get(key)
    if (levels === undefined) {
      levels = this.#compute(key)
      this.#known.set(key, levels)
    }
    return levels
  }

  #compute(excluded: UserId | null): ReferenceLevels | null {
    let best: Ticks | null = null
    let sum = 0
    for (const { order, limit, steps } of this.#quotes) {
      if (order.account === excluded) continue
      best ??= limit
      sum += steps
      if (sum >= this.#needed) return { best, level: limit }
    }
    return null
  }
}

function protect(
  { terms, width }: ProtectionInput,
  order: RestingOrder,
  levels: ReferenceLevels | null,
): Protection {
  const { spec, oracle } = terms
  const scope = { spec, isBuy: order.side === 'LONG', width: widthOf(order, width) }
  const quoted = levels === null ? oracle : referencePrice(scope, oracle, levels)
  const reference = order.forced ? betterFor(scope, quoted, oracle) : quoted
  return {
    seq: order.seq,
    best: levels?.best ?? null,
    level: levels?.level ?? null,
    reference,
    price: protectionTick(terms, scope, order, reference),
  }
}

const widthOf = ({ triggered, forced, widenings }: RestingOrder, width: Rate): Rate => {
  if (forced) return (width * WIDE * BigInt(1 + widenings)) as Rate
  return triggered ? ((width * WIDE) as Rate) : width
}

interface Scope {
  readonly spec: MarketSpec
  readonly isBuy: boolean
  readonly width: Rate
}

/** R = min(level, max(best, O)·(1+w)) for a buy, max(level, min(best, O)·(1−w)) for a sell. */
function referencePrice(scope: Scope, oracle: Price, { best, level }: ReferenceLevels): Price {
  const { spec, isBuy } = scope
  const [bestPrice, levelPrice] = [priceOf(spec, best), priceOf(spec, level)]
  return isBuy
    ? minOf(levelPrice, widened(scope, maxOf(bestPrice, oracle)))
    : maxOf(levelPrice, widened(scope, minOf(bestPrice, oracle)))
}

/**
 * Other traders' quotes must not worsen a forced order's price beyond the oracle price: its account cannot
 * withdraw the order.
 */
const betterFor = ({ isBuy }: Scope, a: Price, b: Price): Price => (isBuy ? minOf(a, b) : maxOf(a, b))

/**
 * price·(1+w) for a buy, price·(1−w) for a sell, rounded towards the price.
 * In a binary future the distance is w itself, but at most half of the way to 0 and to 1.
 */
function widened({ spec, isBuy, width }: Scope, price: Price): Price {
  if (spec.kind === 'binary_future') {
    const distance = minOf(width, minOf(price / 2n, (ONE - price) / 2n))
    return (isBuy ? price + distance : price - distance) as Price
  }
  if (isBuy) return mulDivDown(price, ONE + width, ONE) as Price
  return (width >= ONE ? 0n : mulDivUp(price, ONE - width, ONE)) as Price
}

/** R·(1±w) in ticks, rounded towards R, clamped to the band, and never beyond the reserved price. */
function protectionTick(
  { spec, band }: RiskTerms,
  scope: Scope,
  order: RestingOrder,
  reference: Price,
): Ticks {
  const price = widened(scope, reference)
  const tick = scope.isBuy ? tickFloor(spec, price) : tickCeil(spec, price)
  return withinReservation(spec, order, clamp(tick, band))
}

const clamp = (tick: Ticks, { lo, hi }: Band): Ticks => maxOf(lo, minOf(hi, tick))

/** A sell outside binary markets reserves by the oracle price instead; see `awaitsOracle`. */
function withinReservation(
  spec: MarketSpec,
  { side, openable, reservedPrice }: RestingOrder,
  tick: Ticks,
): Ticks {
  if (openable === 0) return tick
  if (side === 'LONG') return minOf(tick, reservedPrice)
  return spec.kind === 'binary_future' ? maxOf(tick, reservedPrice) : tick
}

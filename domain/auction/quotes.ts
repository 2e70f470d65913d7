/**
 * Lists the executable steps of one side's limit orders, from the best effective limit on.
 * These are the quotes that a market order of the opposite side can meet.
 */

import type { Book, RestingOrder } from '../book/book.ts'
import { SortedMap } from '../book/sorted-map.ts'
import { reduceOnlyFirst, shareOf } from '../orders/executable.ts'
import type { Side } from '../orders/order.ts'
import type { Steps, Ticks, UserId } from '../units.ts'
import { bandLimit } from './candidates.ts'
import { boundOrder, openableNow, type RiskTerms } from './tranches.ts'

/**
 * Executable steps of one limit order at its effective limit. An order that flips a position has two quotes.
 */
export interface LimitQuote {
  readonly order: RestingOrder
  readonly limit: Ticks
  readonly steps: Steps
}

export interface QuoteInput {
  readonly terms: RiskTerms
  readonly book: Book
  /** Whether an order is quoted. */
  readonly isQuoted: (order: RestingOrder) => boolean
}

/** State before the first quote of a list that starts beyond the best limit. */
export interface Before {
  /** Limits up to this limit are left out. */
  readonly limit: Ticks | null
  /** Position steps that accounts have already used. */
  readonly reduced: ReadonlyMap<UserId, number>
}

const NOTHING: Before = { limit: null, reduced: new Map() }

/**
 * Whether limit `a` is better than `b` for the taker: the buyer of sell quotes, or the seller of buy quotes.
 */
export const isBetter = (quoteSide: Side, a: Ticks, b: Ticks): boolean =>
  quoteSide === 'SHORT' ? a < b : a > b

/**
 * Quotes of one side in the band, best limit first. Reducing capacity goes to an account's orders by price, then
 * reduce-only first, then by seq, as in the auction.
 */
export function* limitQuotes(input: QuoteInput, side: Side, before: Before = NOTHING): Generator<LimitQuote> {
  // Lazy: an effective limit is never better than its signed limit, so quotes better than the next signed limit are
  // complete.
  const pending = new SortedMap<LimitQuote[]>()
  const keyOf = (limit: Ticks): number => (side === 'SHORT' ? limit : -limit)
  const reduced = new Map(before.reduced)
  for (const { price, orders } of priceLevels(input, side, before.limit)) {
    yield* takeBefore(pending, keyOf(price))
    for (const order of orders) {
      for (const quote of quotesOf(input, order, reduced)) {
        const same = pending.get(keyOf(quote.limit))
        if (same === undefined) pending.set(keyOf(quote.limit), [quote])
        else same.push(quote)
      }
    }
  }
  yield* takeBefore(pending, Number.POSITIVE_INFINITY)
}

/** Removes and yields the pending quotes before the key. */
function* takeBefore(pending: SortedMap<LimitQuote[]>, end: number): Generator<LimitQuote> {
  for (;;) {
    const key = pending.firstKey()
    if (key === undefined || key >= end) return
    const quotes = pending.get(key) as LimitQuote[]
    pending.delete(key)
    yield* quotes
  }
}

interface PriceLevel {
  readonly price: Ticks
  readonly orders: readonly RestingOrder[]
}

/** Quoted orders by limit in the band; all limits beyond the aggressive band edge form one level. */
function* priceLevels(
  { terms, book, isQuoted }: QuoteInput,
  side: Side,
  before: Ticks | null,
): Generator<PriceLevel> {
  const { band, protections } = terms
  let price: Ticks | null = null
  let orders: RestingOrder[] = []
  for (const level of book.levels(side, side === 'LONG' ? band.lo : band.hi)) {
    if (before !== null && !isBetter(side, before, level.price)) continue
    const quoted = level.orders.filter(isQuoted)
    if (quoted.length === 0) continue
    const limit = bandLimit(quoted[0] as RestingOrder, band, protections)
    if (price !== null && price !== limit) {
      yield { price, orders: orders.sort(reduceOnlyFirst) }
      orders = []
    }
    price = limit
    orders.push(...quoted)
  }
  if (price !== null) yield { price, orders: orders.sort(reduceOnlyFirst) }
}

/**
 * Executable steps of the order: the remaining part of its account's position, then the steps that its
 * reservation covers.
 */
function quotesOf({ terms }: QuoteInput, order: RestingOrder, reduced: Map<UserId, number>): LimitQuote[] {
  const { account, remaining } = order
  const capacity = terms.capacities.of(account, [order])
  const openable = openableNow(terms, capacity, order)
  const { reducingLimit, openingLimit } = boundOrder(terms, capacity, { order, openable }, null)
  const used = reduced.get(account) ?? 0
  const { reducing, opening } = shareOf(
    remaining,
    (reducingLimit === null ? 0 : Math.abs(capacity.size) - used) as Steps,
    openingLimit === null ? (0 as Steps) : openable,
  )
  if (reducing > 0) reduced.set(account, used + reducing)
  const quotes: LimitQuote[] = []
  if (reducing > 0) quotes.push({ order, limit: reducingLimit as Ticks, steps: reducing })
  if (opening > 0) quotes.push({ order, limit: openingLimit as Ticks, steps: opening })
  return quotes
}

/** Best executable limit of one side, and its steps. */
export interface BestQuote {
  readonly limit: Ticks
  readonly steps: Steps
}

/** Best quote of one side; null if there is none. It counts at least `enough` steps if the side has them. */
export function bestQuote(input: QuoteInput, side: Side, enough: Steps): BestQuote | null {
  let best: Ticks | null = null
  let total = 0
  for (const { limit, steps } of limitQuotes(input, side)) {
    if (best !== null && (total >= enough || limit !== best)) break
    best = limit
    total += steps
  }
  return best === null ? null : { limit: best, steps: total as Steps }
}

/** Merges two lists of quotes, both best first. */
function* merged(
  side: Side,
  known: readonly LimitQuote[],
  rest: Generator<LimitQuote>,
): Generator<LimitQuote> {
  let next = rest.next()
  for (const quote of known) {
    for (; !next.done && isBetter(side, next.value.limit, quote.limit); next = rest.next()) yield next.value
    yield quote
  }
  for (; !next.done; next = rest.next()) yield next.value
}

/** Quotes at one limit. A market order meets the first quote of another account. */
class QuoteLevel {
  readonly limit: Ticks
  readonly #first: LimitQuote
  /** First quote of an account other than the first quote's account. */
  #second: LimitQuote | null = null
  readonly #byAccount = new Map<UserId, LimitQuote>()

  constructor(first: LimitQuote) {
    this.limit = first.limit
    this.#first = first
    this.#byAccount.set(first.order.account, first)
  }

  add(quote: LimitQuote): void {
    const { account } = quote.order
    if (this.#byAccount.has(account)) return
    this.#byAccount.set(account, quote)
    this.#second ??= quote
  }

  /** The account's first quote. */
  of(account: UserId): LimitQuote | undefined {
    return this.#byAccount.get(account)
  }

  /** The first quote of another account. */
  without(account: UserId): LimitQuote | null {
    return this.#first.order.account === account ? this.#second : this.#first
  }
}

/** Quotes of one side by limit, computed once and lazily. */
export class QuoteList {
  readonly #side: Side
  readonly #rest: Generator<LimitQuote>
  readonly #read: QuoteLevel[] = []
  /** First quote after the levels read so far. */
  #next: LimitQuote | undefined

  /** `known`: quotes that `before` leaves out, in any order. */
  constructor(input: QuoteInput, side: Side, known: readonly LimitQuote[], before: Before) {
    this.#side = side
    const sorted = known.toSorted((a, b) => (side === 'SHORT' ? a.limit - b.limit : b.limit - a.limit))
    this.#rest = merged(side, sorted, limitQuotes(input, side, before))
    this.#next = this.#nextQuote()
  }

  /** The levels with a worse limit than `price`, best first. */
  *beyond(price: Ticks): Generator<QuoteLevel> {
    for (let at = this.#firstBeyond(price); ; at++) {
      const level = this.#at(at)
      if (level === undefined) return
      if (isBetter(this.#side, price, level.limit)) yield level
    }
  }

  #nextQuote(): LimitQuote | undefined {
    const next = this.#rest.next()
    return next.done ? undefined : next.value
  }

  #at(index: number): QuoteLevel | undefined {
    if (index < this.#read.length) return this.#read[index]
    if (this.#next === undefined) return undefined
    const level = new QuoteLevel(this.#next)
    this.#next = this.#nextQuote()
    for (; this.#next?.limit === level.limit; this.#next = this.#nextQuote()) level.add(this.#next)
    this.#read.push(level)
    return level
  }

  /** Index of the first level read so far beyond the price; the number of levels if there is none. */
  #firstBeyond(price: Ticks): number {
    let low = 0
    let high = this.#read.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (isBetter(this.#side, price, (this.#read[middle] as QuoteLevel).limit)) high = middle
      else low = middle + 1
    }
    return low
  }
}

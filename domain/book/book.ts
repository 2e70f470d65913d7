/**
 * A market's open orders in memory, indexed for the auction. Mutable.
 * The same set of orders yields the same book, independent of insertion order.
 */

import { invariant } from '../invariant.ts'
import type { Side } from '../orders/order.ts'
import type { Millis, Seconds, Seq, Steps, Ticks, UserId } from '../units.ts'
import { AccountSeqs } from './account-seqs.ts'
import { Expiries } from './expiries.ts'
import { Leverages } from './leverages.ts'
import { SeqMap } from './seq-map.ts'
import { SortedMap } from './sorted-map.ts'

/**
 * An open order in the form that the auction reads. Immutable.
 * A triggered conditional order is a MARKET or LIMIT order with a new seq.
 */
export interface RestingOrder {
  readonly seq: Seq
  readonly account: UserId
  readonly side: Side
  readonly type: 'MARKET' | 'LIMIT'
  /** The signed limit; 0 for a market order. */
  readonly limit: Ticks
  /** Quantity less the matched steps; above 0. */
  readonly remaining: Steps
  readonly leverage: number
  readonly reduceOnly: boolean
  /** True if the order takes part in one auction only. */
  readonly ioc?: true
  /**
   * Signed steps that must not fill, if any.
   * With `unused` 3, the chain sees 3 unfilled steps when `remaining` is 0, so the order counts as partly
   * filled there.
   */
  readonly unused?: Steps
  /** True for a forced order: reduce-only, market type, unsigned. */
  readonly forced: boolean
  /** True for a conditional order that its trigger turned into a market or limit order. */
  readonly triggered: boolean
  /**
   * Number of batches that left a forced order unfilled. Each batch widens its price protection; 0 for
   * other orders.
   */
  readonly widenings: number
  /** Opening steps that the reservation covers; 0 for reduce-only and forced orders. */
  readonly openable: Steps
  /** Price of the reservation; 0 if nothing is reserved. */
  readonly reservedPrice: Ticks
  /** The last second in which the order may be matched; 0 never expires. */
  readonly expiration: Seconds
  /** Time of acceptance or trigger. A market order waits at most 2 s after it. */
  readonly acceptedAt: Millis
}

/** All limit orders of one side at one price, by seq. */
export interface Level {
  readonly price: Ticks
  readonly steps: Steps
  readonly orders: readonly RestingOrder[]
}

interface MutableLevel {
  readonly price: Ticks
  steps: Steps
  readonly orders: RestingOrder[]
}

export class Book {
  readonly #orders = new SeqMap<RestingOrder>()
  readonly #accounts = new AccountSeqs()
  readonly #expiries = new Expiries()
  readonly #leverages = new Leverages()
  readonly #levels = { LONG: new SortedMap<MutableLevel>(), SHORT: new SortedMap<MutableLevel>() }
  readonly #markets = { LONG: [] as RestingOrder[], SHORT: [] as RestingOrder[] }
  readonly #ioc = new Set<Seq>()

  static of(orders: Iterable<RestingOrder>): Book {
    const book = new Book()
    for (const order of orders) book.insert(order)
    return book
  }

  get size(): number {
    return this.#orders.size
  }

  get(seq: Seq): RestingOrder | undefined {
    return this.#orders.get(seq)
  }

  insert(order: RestingOrder): void {
    invariant(this.#orders.get(order.seq) === undefined, 'a seq is in the book once')
    invariant(order.remaining > 0, 'an open order has remaining steps')
    this.#orders.set(order.seq, order)
    this.#accounts.add(order.account, order.seq)
    this.#expiries.add(order.seq, order.expiration)
    this.#leverages.add(order.seq, order.leverage)
    if (order.ioc) this.#ioc.add(order.seq)
    if (order.type === 'MARKET') insertBySeq(this.#markets[order.side], order)
    else this.#insertIntoLevel(order)
  }

  /** Removes the order and returns it; undefined if it is not in the book. */
  remove(seq: Seq): RestingOrder | undefined {
    const order = this.#orders.get(seq)
    if (order === undefined) return undefined
    this.#orders.delete(seq)
    this.#accounts.remove(order.account, seq)
    this.#expiries.remove(seq, order.expiration)
    this.#leverages.remove(seq, order.leverage)
    if (order.ioc) this.#ioc.delete(seq)
    if (order.type === 'MARKET') removeBySeq(this.#markets[order.side], seq)
    else this.#removeFromLevel(order)
    return order
  }

  /**
   * Subtracts a fill from the order; `opened` steps of the fill have used its reservation.
   * An order with no remaining steps is removed.
   */
  reduce(seq: Seq, fill: Steps, opened: Steps): void {
    const order = this.#orders.get(seq)
    invariant(
      order !== undefined && 0 < fill && fill <= order.remaining,
      'a fill is at most what remains of an open order',
    )
    const remaining = (order.remaining - fill) as Steps
    const openable = Math.max(0, Math.min(order.openable - opened, remaining)) as Steps
    if (remaining === 0) this.remove(seq)
    else this.replace({ ...order, remaining, openable })
  }

  /**
   * Replaces the order with the same seq by a copy with another `remaining`, `openable` or `reservedPrice`.
   */
  replace(order: RestingOrder): void {
    const old = this.#orders.get(order.seq)
    invariant(
      old !== undefined && samePlace(old, order),
      'replacing an order changes neither account, side, type, limit nor expiration',
    )
    this.#orders.set(order.seq, order)
    if (order.type === 'MARKET') {
      replaceBySeq(this.#markets[order.side], order)
      return
    }
    const level = this.#level(order)
    level.steps = (level.steps + order.remaining - old.remaining) as Steps
    replaceBySeq(level.orders, order)
  }

  /** Accounts with open orders. */
  accounts(): Iterable<UserId> {
    return this.#accounts.accounts()
  }

  /** Seqs of the orders with leverage above `most`. */
  aboveLeverage(most: number): Iterable<Seq> {
    return this.#leverages.above(most)
  }

  /** An account's open orders by seq. */
  ordersOf(account: UserId): RestingOrder[] {
    return this.#accounts.of(account).map((seq) => this.#orders.get(seq) as RestingOrder)
  }

  /** Every open order by seq. */
  orders(): RestingOrder[] {
    return [...this.#orders.values()].sort((a, b) => a.seq - b.seq)
  }

  /** Market orders of one side, by seq. */
  marketOrders(side: Side): readonly RestingOrder[] {
    return this.#markets[side]
  }

  get hasIoc(): boolean {
    return this.#ioc.size > 0
  }

  /** Orders that take part in one auction only, by seq. */
  iocOrders(): RestingOrder[] {
    return [...this.#ioc].sort((a, b) => a - b).map((seq) => this.#orders.get(seq) as RestingOrder)
  }

  /** The level with the highest buy or the lowest sell limit, expired orders included. */
  best(side: Side): Level | undefined {
    return this.#levels[side].first()
  }

  /**
   * Levels from the best price to `worst`, inclusive; all levels if `worst` is omitted. The book must not
   * change during the iteration.
   */
  levels(side: Side, worst?: Ticks): Generator<Level> {
    return this.#levels[side].upTo(worst === undefined ? Number.POSITIVE_INFINITY : levelKey(side, worst))
  }

  /**
   * Seqs of at most `most` orders that have expired at `asOf` (see `isExpired`), ascending. Earlier
   * expirations are returned first.
   * The cost does not depend on the book size.
   */
  expired(asOf: Millis, most?: number): Seq[] {
    return this.#expiries.expired(asOf, most)
  }

  #level(order: RestingOrder): MutableLevel {
    const level = this.#levels[order.side].get(levelKey(order.side, order.limit))
    invariant(level !== undefined, 'a limit order has a level')
    return level
  }

  #insertIntoLevel(order: RestingOrder): void {
    const levels = this.#levels[order.side]
    const key = levelKey(order.side, order.limit)
    let level = levels.get(key)
    if (level === undefined) {
      level = { price: order.limit, steps: 0 as Steps, orders: [] }
      levels.set(key, level)
    }
    level.steps = (level.steps + order.remaining) as Steps
    insertBySeq(level.orders, order)
  }

  #removeFromLevel(order: RestingOrder): void {
    const level = this.#level(order)
    level.steps = (level.steps - order.remaining) as Steps
    removeBySeq(level.orders, order.seq)
    if (level.orders.length === 0) this.#levels[order.side].delete(levelKey(order.side, order.limit))
  }
}

/** Key that sorts the best price first on either side. */
const levelKey = (side: Side, price: Ticks): number => (side === 'LONG' ? -price : price)

const samePlace = (a: RestingOrder, b: RestingOrder): boolean =>
  a.account === b.account &&
  a.side === b.side &&
  a.type === b.type &&
  a.limit === b.limit &&
  a.expiration === b.expiration &&
  b.remaining > 0

/** A new order has the largest seq, so nearly every insert is a push. */
function insertBySeq(orders: RestingOrder[], order: RestingOrder): void {
  const last = orders.at(-1)
  if (last === undefined || last.seq < order.seq) orders.push(order)
  else orders.splice(indexOfSeq(orders, order.seq), 0, order)
}

function removeBySeq(orders: RestingOrder[], seq: Seq): void {
  orders.splice(indexOfSeq(orders, seq), 1)
}

function replaceBySeq(orders: RestingOrder[], order: RestingOrder): void {
  orders[indexOfSeq(orders, order.seq)] = order
}

/** The index of the order with this seq, or the index at which it would be inserted. */
function indexOfSeq(orders: readonly RestingOrder[], seq: Seq): number {
  let low = 0
  let high = orders.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((orders[middle] as RestingOrder).seq < seq) low = middle + 1
    else high = middle
  }
  return low
}

/** A market's conditional orders that wait for the mark price, indexed by trigger. Mutable. */

import { invariant } from '../invariant.ts'
import { type OrderType, triggerCondition } from '../orders/order.ts'
import type { Reservable } from '../orders/reservation.ts'
import type { Millis, Price, Seconds, Seq, Steps, Ticks, UserId } from '../units.ts'
import { AccountSeqs } from './account-seqs.ts'
import { Expiries } from './expiries.ts'
import { Leverages } from './leverages.ts'
import { SeqMap } from './seq-map.ts'
import { SortedMap } from './sorted-map.ts'

/**
 * A waiting order. Immutable.
 * It claims reducing capacity and reserves margin at the seq of its acceptance.
 */
export interface WaitingOrder extends Reservable {
  readonly account: UserId
  readonly type: OrderType
  readonly trigger: Ticks
  /** True for an exit with an unmatched entry; no mark triggers it. */
  readonly dormant?: true
  readonly openable: Steps
  /** Last second in which it may trigger; 0 never expires. */
  readonly expiration: Seconds
}

/**
 * Insert, remove and replace cost O(log triggers) and a short memory move. The cost of `triggered` depends on
 * the number of results.
 */
export class TriggerBook {
  readonly #orders = new SeqMap<WaitingOrder>()
  readonly #accounts = new AccountSeqs()
  readonly #expiries = new Expiries()
  readonly #leverages = new Leverages()
  /** Orders that trigger at or above their key, by trigger. */
  readonly #above = new SortedMap<Set<Seq>>()
  /** Orders that trigger at or below their negated key, by negated trigger. */
  readonly #below = new SortedMap<Set<Seq>>()

  get size(): number {
    return this.#orders.size
  }

  get(seq: Seq): WaitingOrder | undefined {
    return this.#orders.get(seq)
  }

  insert(order: WaitingOrder): void {
    invariant(this.#orders.get(order.seq) === undefined, 'a seq waits once')
    const { index, key } = this.#placeOf(order)
    this.#orders.set(order.seq, order)
    this.#accounts.add(order.account, order.seq)
    this.#expiries.add(order.seq, order.expiration)
    this.#leverages.add(order.seq, order.leverage)
    if (order.dormant) return
    const seqs = index.get(key)
    if (seqs === undefined) index.set(key, new Set([order.seq]))
    else seqs.add(order.seq)
  }

  /** Removes the order and returns it; undefined if it does not wait. */
  remove(seq: Seq): WaitingOrder | undefined {
    const order = this.#orders.get(seq)
    if (order === undefined) return undefined
    const { index, key } = this.#placeOf(order)
    this.#orders.delete(seq)
    this.#accounts.remove(order.account, seq)
    this.#expiries.remove(seq, order.expiration)
    this.#leverages.remove(seq, order.leverage)
    if (order.dormant) return order
    const seqs = index.get(key) as Set<Seq>
    seqs.delete(seq)
    if (seqs.size === 0) index.delete(key)
    return order
  }

  /** Sets the reservation of a waiting order. */
  reserve(seq: Seq, openable: Steps, reservedPrice: Ticks): void {
    const order = this.#orders.get(seq)
    invariant(order !== undefined, 'the order whose reservation changes is waiting')
    this.#orders.set(seq, { ...order, openable, reservedPrice })
  }

  /** An account's waiting orders by seq. */
  ordersOf(account: UserId): WaitingOrder[] {
    return this.#accounts.of(account).map((seq) => this.#orders.get(seq) as WaitingOrder)
  }

  /** Accounts with waiting orders. */
  accounts(): Iterable<UserId> {
    return this.#accounts.accounts()
  }

  /** Seqs of the orders with leverage above `most`. */
  aboveLeverage(most: number): Iterable<Seq> {
    return this.#leverages.above(most)
  }

  /** Every waiting order by seq. */
  orders(): WaitingOrder[] {
    return [...this.#orders.values()].sort((a, b) => a.seq - b.seq)
  }

  /**
   * The orders whose trigger the mark has reached (see `isTriggered`), by seq. `tick` is the market's tick.
   */
  triggered(mark: Price, tick: Price): WaitingOrder[] {
    const down = Number(mark / tick)
    const up = mark % tick === 0n ? down : down + 1
    const hits = [...this.#above.upTo(down), ...this.#below.upTo(-up)].flatMap((seqs) => [...seqs])
    return hits.sort((a, b) => a - b).map((seq) => this.#orders.get(seq) as WaitingOrder)
  }

  /** Seqs of the waiting orders that have expired at `asOf`, ascending; at most `most`. */
  expired(asOf: Millis, most?: number): Seq[] {
    return this.#expiries.expired(asOf, most)
  }

  #placeOf({ type, side, trigger }: WaitingOrder): { index: SortedMap<Set<Seq>>; key: number } {
    const condition = triggerCondition(type, side)
    invariant(condition !== 0, 'only a conditional order waits')
    return condition === 1 ? { index: this.#above, key: trigger } : { index: this.#below, key: -trigger }
  }
}

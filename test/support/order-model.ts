/**
 * A simple model of one market's orders: plain mutable objects, searched completely at every step. From the product it uses the price
 * rules, the reservation per step, and the auction. All state and all transitions are its own.
 */

import { type BatchOutcome, clearAndMatch } from '../../domain/auction/batch.ts'
import { Book } from '../../domain/book/book.ts'
import { priceBand } from '../../domain/market/band.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { DEFAULT_PRICE_PROTECTION } from '../../domain/market/price-protection.ts'
import { isTriggered, type OrderStatus, type Side, type StatusReason } from '../../domain/orders/order.ts'
import { heldPerStep, reservationPerStep, reservedPriceOf } from '../../domain/orders/reservation.ts'
import { FLAT, type Position } from '../../domain/positions/position.ts'
import type { FundingIndex, Millis, Price, Seq, Ticks, UserId } from '../../domain/units.ts'
import { poolOf } from './any-positions.ts'
import { isBelowRequirement } from './margin-requirement.ts'
import {
  type Auction,
  type KeeperStep,
  type ModelBatch,
  type ModelFill,
  type ModelOrder,
  type Observed,
  restingOf,
} from './order-model-terms.ts'

const statusAfter = (reason: StatusReason): OrderStatus => {
  if (reason === 'FILLED') return 'FILLED'
  return reason === 'EXPIRED' || reason === 'SIGNER_EXPIRED' ? 'EXPIRED' : 'CANCELLED'
}

const MARKET_WAIT = 2000
/** Of market orders; voiding their fills makes them open again. */
const REMAINDERS: readonly StatusReason[] = ['MARKET_REMAINDER', 'PRICE_PROTECTION']
const bit = (side: Side): 1 | -1 => (side === 'LONG' ? 1 : -1)

const termsOf = ({ side, price, leverage, reservedPrice }: ModelOrder) => ({
  ...{ side, limit: price as Ticks, leverage, reservedPrice: reservedPrice as Ticks },
})

export class Model {
  readonly orders: ModelOrder[] = []
  readonly matched = new Map<number, Position>()
  readonly queue: ModelBatch[] = []
  readonly mined: ModelBatch[] = []
  /** No auction fills their orders. */
  excluded: ReadonlySet<number> = new Set()
  fundingIndex = 0n
  readonly seen = { triggered: 0, batches: 0, short: 0, expired: 0, left: 0, closed: 0, restored: 0 }
  readonly #spec: MarketSpec
  #observed: Observed = { free: new Map(), mined: new Map() }
  readonly #triggered = new Set<ModelOrder>()
  readonly #overdue = new Set<ModelOrder>()
  #ranks = 0

  constructor(spec: MarketSpec) {
    this.#spec = spec
  }

  observe(observed: Observed): void {
    this.#observed = observed
  }

  // ---------------------------------------------------------------------- queries

  /** The rank of the newest order. */
  get newest(): number {
    return this.#ranks
  }

  remaining = (order: ModelOrder): number => order.quantity - order.filled - order.settling
  hasEnded = ({ reason }: ModelOrder): boolean => reason !== null
  waits = ({ status, leaving }: ModelOrder): boolean => status === 'PENDING_TRIGGER' && leaving === null
  rests = (order: ModelOrder): boolean =>
    order.status === 'OPEN' && order.leaving === null && this.remaining(order) > 0
  /** The order's position has closed in a batch that is not mined. */
  leftWithPosition = ({ leaving, closedBy }: ModelOrder): boolean => leaving !== null && closedBy !== null
  /** A cancel changes how the order ends. */
  isLive = (order: ModelOrder): boolean =>
    !this.hasEnded(order) && (order.leaving === null || this.leftWithPosition(order))

  reserved(order: ModelOrder): bigint {
    return order.openable === 0 ? 0n : this.#perStep(order) * BigInt(order.openable)
  }

  reservedOf(account: number): bigint {
    const own = this.orders.filter((order) => order.account === account)
    return own.reduce((sum, order) => sum + this.reserved(order) + order.held, 0n)
  }

  sizeOf = (account: number): number => this.#positionOf(account).size
  #positionOf = (account: number): Position => this.matched.get(account) ?? FLAT

  #perStep = (order: ModelOrder): bigint => reservationPerStep(this.#spec, termsOf(order))

  /** A fill beyond the order's reserved price holds its cost. */
  #heldPerStep(order: ModelOrder, price: Ticks | null, oracle: bigint): bigint {
    const clearing = price ?? (0 as Ticks)
    return heldPerStep(this.#spec, termsOf(order), {
      ...{ charging: this.#spec, clearing, oracle: oracle as Price },
    })
  }

  /** Adds an order and its reservation, given the account's position and other orders. The default rank is the newest. */
  place(
    order: Omit<
      ModelOrder,
      'rank' | 'openable' | 'held' | 'filled' | 'settling' | 'leaving' | 'closedBy' | 'reason' | 'enteredAt'
    >,
    rank = ++this.#ranks,
  ): ModelOrder {
    const fresh = {
      openable: 0,
      held: 0n,
      filled: 0,
      settling: 0,
      leaving: null,
      closedBy: null,
      reason: null,
    }
    const placed: ModelOrder = { ...order, ...fresh, rank, enteredAt: order.acceptedAt }
    this.orders.push(placed)
    placed.openable = this.#openables(order.account, this.sizeOf(order.account)).get(placed) ?? 0
    return placed
  }

  leave(order: ModelOrder, reason: StatusReason): void {
    order.openable = 0
    order.closedBy = null
    if (order.settling > 0) {
      order.leaving = reason
      if (!REMAINDERS.includes(reason)) order.status = 'CANCEL_PENDING_FINALIZE'
      return
    }
    this.#end(order, reason)
  }

  /** Removes orders: those that have ended for good, and those of a dry run. */
  forget(which: (order: ModelOrder) => boolean): void {
    this.orders.splice(0, this.orders.length, ...this.orders.filter((order) => !which(order)))
  }

  leaveAll(which: (order: ModelOrder) => boolean, reason: StatusReason): void {
    for (const order of this.orders) if (this.isLive(order) && which(order)) this.leave(order, reason)
  }

  step(keeper: KeeperStep): void {
    if (keeper.mark !== null && keeper.mayTrigger) this.trigger(keeper, keeper.mark)
    keeper.liquidate()
    if (keeper.crashesAfterTriggers) return
    this.expire(keeper.now)
    if (keeper.mayMatch) this.match(keeper)
  }

  /** Mines the oldest unmined batch. */
  mine(after: Observed): void {
    const batch = this.queue.shift()
    if (batch === undefined) return
    for (const { order, steps, held } of batch.fills) {
      order.settling -= steps
      order.filled += steps
      order.held -= held
      if (order.filled === order.quantity) this.#end(order, 'FILLED')
      else if (order.leaving !== null && order.settling === 0 && !this.leftWithPosition(order))
        this.#end(order, order.leaving)
    }
    for (const order of this.orders) {
      if (!this.leftWithPosition(order) || order.closedBy !== batch.id) continue
      this.#end(order, 'POSITION_CLOSED')
      batch.closed.push(order)
    }
    this.seen.closed += batch.closed.length
    this.mined.push(batch)
    this.observe(after)
  }

  /** Rolls back the newest mined batch. */
  unmine(after: Observed): void {
    const batch = this.mined.pop()
    if (batch === undefined) return
    for (const { order, steps, held } of batch.fills) {
      order.filled -= steps
      order.settling += steps
      order.held += held
      if (!this.hasEnded(order)) continue
      const reason = order.reason === 'FILLED' ? null : order.reason
      order.leaving = reason
      order.reason = null
      order.status = reason === null || REMAINDERS.includes(reason) ? 'OPEN' : 'CANCEL_PENDING_FINALIZE'
    }
    for (const order of batch.closed) {
      order.reason = null
      order.leaving = 'POSITION_CLOSED'
      order.closedBy = batch.id
      order.status = order.trigger === 0 || this.#triggered.has(order) ? 'OPEN' : 'PENDING_TRIGGER'
    }
    batch.closed = []
    this.queue.unshift(batch)
    this.observe(after)
  }

  /** Voids every unmined batch. Orders for which `culprits` is true end; all other orders return to the book or expire. */
  voidBatches(now: number, culprits: (order: ModelOrder) => boolean): void {
    const batches = this.queue.splice(0)
    const accounts = new Set(batches.flatMap(({ fills }) => fills.map(({ order }) => order.account)))
    for (const order of this.orders) {
      if (!this.leftWithPosition(order) || !batches.some(({ id }) => id === order.closedBy)) continue
      order.leaving = null
      order.closedBy = null
      this.seen.restored++
    }
    for (const { order, steps } of batches.flatMap(({ fills }) => fills)) {
      order.settling -= steps
      const { leaving } = order
      const earlier = leaving === null || REMAINDERS.includes(leaving) ? null : leaving
      order.leaving = earlier ?? (culprits(order) ? 'SETTLEMENT_REVERTED' : this.#tooLate(order, now))
      if (order.settling > 0) continue
      if (order.leaving !== null) this.#end(order, order.leaving)
      order.held = 0n
    }
    for (const account of accounts) {
      this.matched.set(account, this.#observed.mined.get(account) ?? FLAT)
      this.#rebalance(account)
    }
  }

  // ---------------------------------------------------------------------- rules

  #end(order: ModelOrder, reason: StatusReason): void {
    order.leaving = null
    order.openable = 0
    order.reason = reason
    order.status = statusAfter(reason)
  }

  /** A forced order waits for its liquidation. */
  #isTimed = ({ price, forced }: ModelOrder): boolean => price === 0 && !forced

  #tooLate(order: ModelOrder, now: number): StatusReason | null {
    if (!this.#isTimed(order)) return null
    if (order.filled > 0) return 'MARKET_REMAINDER'
    return now - order.enteredAt < MARKET_WAIT ? null : 'SETTLEMENT_REVERTED'
  }

  /** Openable steps of each order: the oldest orders against the position that are not reduce-only close it first. */
  #openables(account: number, size: number): Map<ModelOrder, number> {
    const isOpen = (order: ModelOrder): boolean => this.rests(order) || this.waits(order)
    const own = this.orders.filter((order) => order.account === account && isOpen(order))
    let left = Math.abs(size)
    const openables = new Map<ModelOrder, number>()
    for (const order of own.sort((a, b) => a.rank - b.rank)) {
      const isAgainst = size * bit(order.side) < 0
      const closes = order.reduceOnly || !isAgainst ? 0 : Math.min(left, this.remaining(order))
      left -= closes
      openables.set(order, order.reduceOnly ? 0 : this.remaining(order) - closes)
    }
    return openables
  }

  /** Recomputes openable steps from the matched position, then ends orders that exceed the free balance, newest first. */
  #rebalance(account: number): void {
    for (const [order, openable] of this.#openables(account, this.sizeOf(account))) order.openable = openable
    const newest = this.orders.filter((order) => order.account === account).sort((a, b) => b.rank - a.rank)
    for (const order of newest) {
      if (this.reservedOf(account) <= (this.#observed.free.get(account) ?? 0n)) return
      if (order.openable === 0) continue
      this.seen.short++
      this.leave(order, 'INSUFFICIENT_MARGIN')
    }
  }

  /** Conditional orders whose trigger the mark price has reached, oldest first. */
  reached(mark: bigint): ModelOrder[] {
    const isHit = (order: ModelOrder): boolean =>
      isTriggered({ ...order, trigger: order.trigger as Ticks }, mark as Price, this.#spec.tick)
    return this.orders.filter((order) => this.waits(order) && isHit(order)).sort((a, b) => a.rank - b.rank)
  }

  /** Triggered orders get the ranks after `newest`. */
  trigger({ now, oracle }: Pick<KeeperStep, 'now' | 'oracle'>, mark: bigint, newest = this.#ranks): void {
    const hits = this.reached(mark)
    const band = priceBand(this.#spec, oracle as Price)
    this.#ranks = Math.max(this.#ranks, newest + hits.length)
    for (const order of hits) {
      this.#triggered.add(order)
      this.seen.triggered++
      order.status = 'OPEN'
      order.rank = ++newest
      order.enteredAt = now
      const type = order.type.endsWith('MARKET') ? 'MARKET' : 'LIMIT'
      const terms = {
        side: order.side,
        type,
        price: order.price as Ticks,
        trigger: order.trigger as Ticks,
      } as const
      order.reservedPrice = reservedPriceOf(this.#spec, terms, band)
    }
    for (const order of hits) {
      if (order.reduceOnly && this.sizeOf(order.account) * bit(order.side) >= 0)
        this.leave(order, 'REDUCE_ONLY_NO_POSITION')
    }
    const opening = hits.filter(({ reduceOnly }) => !reduceOnly)
    for (const account of new Set(opening.map(({ account }) => account))) {
      this.#endBelowRequirement(account, hits, oracle as Price)
      this.#rebalance(account)
    }
  }

  /** Triggered limit orders end if their opening share would be below IMR at their own limit. */
  #endBelowRequirement(account: number, hits: readonly ModelOrder[], oracle: Price): void {
    for (const order of hits) {
      if (order.account !== account || order.price === 0 || !this.rests(order)) continue
      const openable = this.#openables(account, this.sizeOf(account)).get(order) ?? 0
      if (openable > 0 && isBelowRequirement(this.#spec, order, oracle))
        this.leave(order, 'MARGIN_REQUIREMENT')
    }
  }

  /** Ends the orders that are due. Those that `mayEnd` excludes stay, and take no part in an auction. */
  expire(now: number, mayEnd: (order: ModelOrder) => boolean = () => true): void {
    this.#overdue.clear()
    for (const order of this.orders) {
      if (!this.waits(order) && !this.rests(order)) continue
      const isDead = order.aliveUntil !== 0 && now > order.aliveUntil * 1000
      const byItself = order.expiration !== 0 && now > order.expiration * 1000
      if (isDead && !mayEnd(order)) this.#overdue.add(order)
      else if (isDead) {
        this.seen.expired++
        this.leave(order, byItself ? 'EXPIRED' : 'SIGNER_EXPIRED')
      } else if (this.rests(order) && this.#isTimed(order) && now - order.enteredAt >= MARKET_WAIT) {
        this.leave(order, 'NO_BATCH_IN_TIME')
      }
    }
  }

  /** The result of an auction without applying it. */
  outcome({ now, oracle, standing }: Omit<Auction, 'batchId'>): BatchOutcome {
    const resting = this.orders
      .filter((order) => this.rests(order) && !this.#overdue.has(order))
      .map((order) => restingOf(order, this.remaining(order)))
    return clearAndMatch({
      ...{
        spec: this.#spec,
        book: Book.of(resting),
        asOf: now as Millis,
        oracle: oracle as Price,
        standingSeq: standing as Seq,
        priceProtection: DEFAULT_PRICE_PROTECTION[this.#spec.kind],
      },
      positions: (account) => this.#positionOf(account),
      ...{ fundingIndex: this.fundingIndex as FundingIndex, pool: poolOf(this.matched.values()) },
      excluded: { accounts: this.excluded as ReadonlySet<UserId>, orders: new Set() },
    })
  }

  match(auction: Auction): void {
    const { clearing, matched } = this.outcome(auction)
    const byRank = (seq: number) => this.orders.find(({ rank }) => rank === seq) as ModelOrder
    const fills = clearing.fills.map(({ seq, fill, opening }): ModelFill => {
      const order = byRank(seq)
      const held =
        opening === 0 ? 0n : this.#heldPerStep(order, clearing.price, auction.oracle) * BigInt(opening)
      order.settling += fill
      order.openable = this.remaining(order) === 0 ? 0 : order.openable - opening
      order.held += held
      return { order, steps: fill, held }
    })
    for (const { seq, reason } of clearing.cancels) this.leave(byRank(seq), reason)
    if (matched === null) return
    const [{ batchId: id, oracle }, { price }] = [auction, matched.clearing]
    for (const [account, position] of matched.positions) {
      this.#leaveWithPosition(account, position.size, id)
      this.matched.set(account, position)
      this.#rebalance(account)
    }
    this.seen.batches++
    this.queue.push({ id, price, oracle, index: this.fundingIndex, fills, closed: [] })
  }

  /** The batch makes `after` of the account's position: reduce-only orders against a position that ends leave the book. */
  #leaveWithPosition(account: number, after: number, batch: number): void {
    const before = Math.sign(this.sizeOf(account))
    if (before === 0 || before === Math.sign(after)) return
    for (const order of this.orders) {
      if (order.account !== account || !order.reduceOnly || bit(order.side) === before) continue
      if (!this.rests(order) && !this.waits(order)) continue
      order.leaving = 'POSITION_CLOSED'
      order.closedBy = batch
      this.seen.left++
    }
  }
}

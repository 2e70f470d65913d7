/**
 * Books of all markets, derived from the orders. They follow every change of the table and every rollback of a change.
 */
import { Book, type RestingOrder } from '../book/book.ts'
import { SortedMap } from '../book/sorted-map.ts'
import { TriggerBook, type WaitingOrder } from '../book/trigger-book.ts'
import { reservable } from '../orders/open-order.ts'
import { bookType, isConditional, type Side } from '../orders/order.ts'
import { isInBook, isWaiting } from '../orders/order-state.ts'
import type { MarketId, Seq, Ticks } from '../units.ts'
import type { OrderRow } from './tables/orders.ts'

export interface MarketBooks {
  readonly book: Book
  readonly waiting: TriggerBook
  /**
   * Acceptance sequences of the triggered orders in the book, by their seq. Every other order's seq is its
   * acceptance sequence.
   */
  readonly triggered: Map<Seq, Seq>
  /** Limits of orders that are out of the book and may return. */
  readonly returning: ReturningLimits
}

/**
 * Counts limit orders that may return to the book, by side and price: all steps are settling, or the order
 * left with its position.
 */
export class ReturningLimits {
  readonly #counts = { LONG: new SortedMap<number>(), SHORT: new SortedMap<number>() }

  add({ side, price }: Pick<OrderRow, 'side' | 'price'>): void {
    const key = keyOf(side, price)
    this.#counts[side].set(key, (this.#counts[side].get(key) ?? 0) + 1)
  }

  remove({ side, price }: Pick<OrderRow, 'side' | 'price'>): void {
    const key = keyOf(side, price)
    const left = (this.#counts[side].get(key) ?? 0) - 1
    if (left > 0) this.#counts[side].set(key, left)
    else this.#counts[side].delete(key)
  }

  /** The highest buy or the lowest sell; undefined if there is none. */
  best(side: Side): Ticks | undefined {
    const key = this.#counts[side].firstKey()
    return key === undefined ? undefined : (Math.abs(key) as Ticks)
  }
}

/** Key that sorts the best price first on either side. */
const keyOf = (side: Side, price: Ticks): number => (side === 'LONG' ? -price : price)

const mayReturn = (order: OrderRow): boolean =>
  order.status === 'OPEN' &&
  bookType(order.type) === 'LIMIT' &&
  !isInBook(order) &&
  (order.closingReason === null || order.closingReason === 'POSITION_CLOSED')

export class Books {
  readonly #markets = new Map<MarketId, MarketBooks>()

  /** The books of the market; empty if it has no orders. */
  of(marketId: MarketId): MarketBooks {
    let books = this.#markets.get(marketId)
    if (books === undefined) {
      books = {
        book: new Book(),
        waiting: new TriggerBook(),
        triggered: new Map(),
        returning: new ReturningLimits(),
      }
      this.#markets.set(marketId, books)
    }
    return books
  }

  /** Follows the change of one order. */
  readonly follow = (before: OrderRow | undefined, after: OrderRow | undefined): void => {
    const { book, waiting, triggered, returning } = this.of((after ?? (before as OrderRow)).marketId)
    if (before !== undefined && mayReturn(before)) returning.remove(before)
    if (after !== undefined && mayReturn(after)) returning.add(after)
    const hadResting = before !== undefined && isInBook(before)
    const hasResting = after !== undefined && isInBook(after)
    if (hadResting && hasResting && before.seq === after.seq) {
      if (!isSameResting(before, after)) book.replace(restingOf(after))
      return
    }
    if (hadResting) {
      book.remove(before.seq)
      triggered.delete(before.seq)
    }
    if (before !== undefined && isWaiting(before)) waiting.remove(before.seq)
    if (hasResting) {
      book.insert(restingOf(after))
      if (after.seq !== after.accepted) triggered.set(after.seq, after.accepted)
    }
    if (after !== undefined && isWaiting(after)) waiting.insert(waitingOf(after))
  }
}

/** Whether both rows yield the same resting order. */
const isSameResting = (a: OrderRow, b: OrderRow): boolean =>
  a.filled + a.settling === b.filled + b.settling &&
  a.openable === b.openable &&
  a.reservedPrice === b.reservedPrice &&
  a.widenings === b.widenings

const restingOf = (order: OrderRow): RestingOrder => ({
  ...reservable(order),
  account: order.account,
  type: bookType(order.type),
  triggered: isConditional(order.type),
  forced: order.forced,
  ...(order.timeInForce === 'ioc' && { ioc: true as const }),
  ...(order.unused > 0 && { unused: order.unused }),
  widenings: order.widenings,
  openable: order.openable,
  expiration: order.aliveUntil,
  acceptedAt: order.triggeredAt ?? order.acceptedAt,
})

const waitingOf = (order: OrderRow): WaitingOrder => ({
  ...reservable(order),
  account: order.account,
  type: order.type,
  trigger: order.trigger,
  ...(order.dormant && { dormant: true as const }),
  openable: order.openable,
  expiration: order.aliveUntil,
})

/** The books of all markets, derived from the orders: they follow every change of the table, and every change that is taken back. */
import { Book, type RestingOrder } from '../book/book.ts'
import { TriggerBook, type WaitingOrder } from '../book/trigger-book.ts'
import { reservable } from '../orders/open-order.ts'
import { bookType, isConditional } from '../orders/order.ts'
import { isInBook, isWaiting } from '../orders/order-state.ts'
import type { MarketId, Seq } from '../units.ts'
import type { OrderRow } from './tables/orders.ts'

export interface MarketBooks {
  readonly book: Book
  readonly waiting: TriggerBook
  /** Acceptances of the triggered orders in the book, by their places. Every other order has the place of its acceptance. */
  readonly triggered: Map<Seq, Seq>
}

export class Books {
  readonly #markets = new Map<MarketId, MarketBooks>()

  /** The books of the market; empty if it has no orders. */
  of(marketId: MarketId): MarketBooks {
    let books = this.#markets.get(marketId)
    if (books === undefined) {
      books = { book: new Book(), waiting: new TriggerBook(), triggered: new Map() }
      this.#markets.set(marketId, books)
    }
    return books
  }

  /** Follows the change of one order. */
  readonly follow = (before: OrderRow | undefined, after: OrderRow | undefined): void => {
    const { book, waiting, triggered } = this.of((after ?? (before as OrderRow)).marketId)
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

/** Whether a book reads the same of both. */
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
  openable: order.openable,
  expiration: order.aliveUntil,
})

/** Keeps a market's book equal to its orders table by reading the market's shard log, and nothing else. */
import { Book, type RestingOrder } from './book.ts'
import { invariant } from './invariant.ts'
import type { BatchCleared, MarketRow, OrderPlaced } from './log.ts'
import type { MarketSpec } from './market.ts'
import type { OpenOrder } from './open-order.ts'
import { bookType, isConditional } from './order.ts'
import { isInBook, unmatched } from './order-state.ts'
import { reservePerStep } from './reservation.ts'
import type { Millis, Quote, Seconds, Seq, Steps, Ticks, UserId } from './units.ts'

/** `reload`: the row says something that the book cannot follow (an unwinding): load it anew. */
export type Fed = 'applied' | 'reload'

/** The book and who is in it under which order id. Mutable. */
export class BookFeed {
  readonly book: Book
  readonly #spec: MarketSpec
  readonly #seqs = new Map<string, Seq>()
  readonly #ids = new Map<Seq, string>()
  #touched = new Set<UserId>()

  constructor(spec: MarketSpec, orders: Iterable<OpenOrder>) {
    this.#spec = spec
    this.book = new Book()
    for (const order of orders) if (isInBook(order)) this.#insert(order.orderId, restingOrder(order))
  }

  /** Id of an order in the book. */
  idOf(seq: Seq): string {
    const id = this.#ids.get(seq)
    invariant(id !== undefined, 'the order is in the book')
    return id
  }

  /** Accounts whose matched position has changed since the last call. */
  takeTouched(): ReadonlySet<UserId> {
    const touched = this.#touched
    this.#touched = new Set()
    return touched
  }

  apply(seq: number, row: MarketRow): Fed {
    switch (row.kind) {
      case 'order_placed':
        if (!isConditional(row.type)) this.#insert(row.order_id, placedOrder(seq as Seq, row))
        return 'applied'
      case 'order_ending':
      case 'order_ended':
        this.#remove(row.order_id)
        return 'applied'
      case 'reservation_changed':
        this.#reserve(row.order_id, row.openable as Steps, row.reserved_price as Ticks)
        return 'applied'
      case 'batch_cleared':
        this.#match(row)
        return 'applied'
      case 'order_triggered':
      case 'batch_unwound':
        return 'reload'
      case 'part_settled':
        return row.rollback || row.fills.some(({ matched }) => !matched) ? 'reload' : 'applied'
      case 'part_submitted':
      case 'part_confirmed':
      case 'prices_updated':
      case 'market_listed':
        return 'applied'
    }
  }

  #insert(orderId: string, order: RestingOrder): void {
    this.book.insert(order)
    this.#seqs.set(orderId, order.seq)
    this.#ids.set(order.seq, orderId)
  }

  #remove(orderId: string): void {
    const seq = this.#seqs.get(orderId)
    if (seq === undefined) return
    this.book.remove(seq)
    this.#forget(orderId, seq)
  }

  #forget(orderId: string, seq: Seq): void {
    this.#seqs.delete(orderId)
    this.#ids.delete(seq)
  }

  #reserve(orderId: string, openable: Steps, reservedPrice: Ticks): void {
    const order = this.#orderOf(orderId)
    if (order !== undefined) this.book.replace({ ...order, openable, reservedPrice })
  }

  #match({ fills, closing }: BatchCleared): void {
    for (const { order_id, user_id, steps, held } of fills) {
      this.#touched.add(user_id as UserId)
      const order = this.#orderOf(order_id)
      invariant(order !== undefined, 'a filled order is in the book')
      this.book.reduce(order.seq, steps as Steps, openedBy(this.#spec, order, BigInt(held) as Quote))
      if (this.book.get(order.seq) === undefined) this.#forget(order_id, order.seq)
    }
    for (const { order_id } of closing) this.#remove(order_id)
  }

  #orderOf(orderId: string): RestingOrder | undefined {
    const seq = this.#seqs.get(orderId)
    return seq === undefined ? undefined : this.book.get(seq)
  }
}

/** What a fill opened follows from what it holds: exact, because a reservation is linear in steps. */
function openedBy(spec: MarketSpec, order: RestingOrder, held: Quote): Steps {
  if (held === 0n) return 0 as Steps
  return Number(held / reservePerStep(spec, order)) as Steps
}

export const restingOrder = (order: OpenOrder): RestingOrder => ({
  seq: order.seq,
  account: order.account,
  side: order.side,
  type: bookType(order.type),
  limit: order.price,
  remaining: unmatched(order),
  leverage: order.leverage,
  reduceOnly: order.reduceOnly,
  forced: false,
  openable: order.openable,
  reservedPrice: order.reservedPrice,
  expiration: order.expiration,
  acceptedAt: order.acceptedAt,
})

const placedOrder = (seq: Seq, row: OrderPlaced): RestingOrder => ({
  seq,
  account: row.user_id as UserId,
  side: row.side,
  type: bookType(row.type),
  limit: row.price as Ticks,
  remaining: row.quantity as Steps,
  leverage: row.leverage,
  reduceOnly: row.reduce_only,
  forced: false,
  openable: row.openable as Steps,
  reservedPrice: row.reserved_price as Ticks,
  expiration: row.expiration as Seconds,
  acceptedAt: row.accepted_at as Millis,
})

/**
 * A market's open and waiting orders and its accounts in liquidation, in memory. Journal rows keep them equal
 * to their tables.
 */

import { invariant } from '../invariant.ts'
import type { BatchCleared, PartSettled } from '../journal/batch-rows.ts'
import type {
  MarketRow,
  OrderPlaced,
  OrderTriggered,
  PositionsMoved,
  TriggerEvidence,
} from '../journal/journal-row.ts'
import type { LiquidationChanged } from '../journal/liquidation-row.ts'
import type { MarketSpec } from '../market/market.ts'
import { enteredBookAt, type OpenOrder, reservable } from '../orders/open-order.ts'
import { acceptedSeq, bookType, isConditional, orderIdOf } from '../orders/order.ts'
import { isInBook, isWaiting } from '../orders/order-state.ts'
import { reservationPerStep } from '../orders/reservation.ts'
import type { Millis, Quote, Seconds, Seq, Steps, Ticks, UserId } from '../units.ts'
import { Book, type RestingOrder } from './book.ts'
import { LiveBook } from './live-book.ts'
import { TriggerBook, type WaitingOrder } from './trigger-book.ts'

/** Fields of a stored order that the book reads. */
export type BookOrder = Pick<
  OpenOrder,
  | 'orderId'
  | 'seq'
  | 'account'
  | 'side'
  | 'type'
  | 'price'
  | 'quantity'
  | 'filled'
  | 'settling'
  | 'status'
  | 'closingReason'
  | 'leverage'
  | 'reduceOnly'
  | 'trigger'
  | 'aliveUntil'
  | 'openable'
  | 'reservedPrice'
  | 'acceptedAt'
  | 'forced'
> & {
  readonly triggered: Pick<TriggerEvidence, 'at'> | null
  /** Number of consecutive batches that left a forced order unfilled. */
  readonly widenings?: number
}

/** Open orders, waiting orders, the ids of both, and the accounts in liquidation. Mutable. */
export class MarketBook extends LiveBook {
  override readonly book = new Book()
  override readonly waiting = new TriggerBook()
  /** Specification with the taker rate of reservations. */
  #spec: MarketSpec
  /**
   * Seqs of triggered orders by id. Every other order is in the book at the seq in its id.
   * A map of all ids took a fifth of the time to build the book.
   */
  readonly #seqs = new Map<string, Seq>()
  readonly #ids = new Map<Seq, string>()
  readonly #liquidating: Map<UserId, Seq>
  #changedAccounts = new Set<UserId>()
  #staleAccounts = new Set<UserId>()

  /** `liquidating`: accounts by liquidation number. */
  constructor(
    spec: MarketSpec,
    orders: Iterable<BookOrder>,
    liquidating: Iterable<readonly [UserId, Seq]> = [],
  ) {
    super()
    this.#spec = spec
    this.#liquidating = new Map(liquidating)
    this.insertAll(orders)
  }

  override get liquidating(): ReadonlyMap<UserId, Seq> {
    return this.#liquidating
  }

  /** From the next row on, reservations use the taker rate of this specification. */
  reserveBy(spec: MarketSpec): void {
    this.#spec = spec
  }

  override idOf(seq: Seq): string {
    invariant(this.get(seq) !== undefined, 'the order is in the book')
    return this.#ids.get(seq) ?? orderIdOf(this.#spec.marketId, seq)
  }

  /** Accounts with a matched position that changed since the last call. Clears the set. */
  drainChangedAccounts(): ReadonlySet<UserId> {
    const changed = this.#changedAccounts
    this.#changedAccounts = new Set()
    return changed
  }

  /**
   * Stale accounts: their orders are out of the book until `insertAll` returns them. Clears the set.
   * An account becomes stale if a row returns orders to the book that only the orders table has.
   */
  drainStaleAccounts(): ReadonlySet<UserId> {
    const stale = this.#staleAccounts
    this.#staleAccounts = new Set()
    return stale
  }

  /** Inserts the live orders of accounts without orders in the book. */
  insertAll(orders: Iterable<BookOrder>): void {
    for (const order of orders) {
      if (isInBook(order)) this.book.insert(restingOrder(order))
      else if (isWaiting(order)) this.waiting.insert(waitingOrder(order))
      if (order.triggered !== null && isInBook(order)) this.#index(order.orderId, order.seq)
    }
  }

  apply(seq: number, row: MarketRow): void {
    switch (row.kind) {
      case 'order_placed':
        if (!this.#isStale(row)) this.#place(seq as Seq, row)
        return
      case 'order_triggered':
        if (!this.#isStale(row)) this.#trigger(seq as Seq, row)
        return
      case 'order_ending':
      case 'order_ended':
        this.#remove(row.order_id)
        return
      case 'reservation_changed':
        this.#reserve(row.order_id, row.openable as Steps, row.reserved_price as Ticks)
        return
      case 'batch_cleared':
        this.#match(row)
        return
      case 'positions_moved':
        this.#move(row)
        return
      case 'action_dropped':
        for (const userId of row.rematched) this.#changedAccounts.add(userId as UserId)
        return
      case 'batch_voided':
        for (const { user_id } of row.fills) this.#markStale(user_id)
        return
      case 'part_settled':
        this.#settle(row)
        return
      case 'liquidation_changed':
        this.#liquidate(row)
        return
      case 'orders_protected':
      case 'part_submitted':
      case 'part_confirmed':
      case 'prices_updated':
      case 'market_listed':
      case 'funding_updated':
      case 'inheritance_failed':
      case 'market_ended':
      case 'ending_changed':
      case 'final_price_reported':
      case 'haircut_fixed':
      case 'terms_changed':
      case 'fees_announced':
      case 'protection_announced':
      case 'adjustment_changed':
        return
    }
  }

  #isStale = ({ user_id }: { readonly user_id: number }): boolean =>
    this.#staleAccounts.has(user_id as UserId)

  /** Takes the account's orders out of the book and requests its orders and its position. */
  #markStale(userId: number): void {
    const account = userId as UserId
    for (const { seq } of this.ordersOf(account)) this.#remove(this.idOf(seq))
    this.#staleAccounts.add(account)
    this.#changedAccounts.add(account)
  }

  #place(seq: Seq, row: OrderPlaced): void {
    if (isConditional(row.type)) this.waiting.insert(placedWaiting(seq, row))
    else this.book.insert(placedResting(seq, row))
  }

  #trigger(seq: Seq, row: OrderTriggered): void {
    const order = this.waiting.remove(this.#seqOf(row.order_id))
    invariant(order !== undefined, 'a triggered order was waiting')
    this.book.insert(triggeredOrder(seq, order, row))
    this.#index(row.order_id, seq)
  }

  #remove(orderId: string): void {
    const seq = this.#seqOf(orderId)
    if (this.book.remove(seq) === undefined) this.waiting.remove(seq)
    this.#unindex(orderId, seq)
  }

  #index(orderId: string, seq: Seq): void {
    this.#seqs.set(orderId, seq)
    this.#ids.set(seq, orderId)
  }

  #unindex(orderId: string, seq: Seq): void {
    this.#seqs.delete(orderId)
    this.#ids.delete(seq)
  }

  /** Seq of the order in the book, if it is in the book. */
  #seqOf = (orderId: string): Seq => this.#seqs.get(orderId) ?? acceptedSeq(orderId)

  #reserve(orderId: string, openable: Steps, reservedPrice: Ticks): void {
    const seq = this.#seqOf(orderId)
    const order = this.book.get(seq)
    if (order !== undefined) this.book.replace({ ...order, openable, reservedPrice })
    else if (this.waiting.get(seq) !== undefined) this.waiting.reserve(seq, openable, reservedPrice)
  }

  #liquidate(row: LiquidationChanged): void {
    const account = row.user_id as UserId
    if (row.step === 'started') this.#liquidating.set(account, row.number as Seq)
    if (row.step === 'ended') this.#liquidating.delete(account)
    if (row.step === 'widened') this.#widen(row)
  }

  /** The order may be out of the book, because its account is stale. */
  #widen({ order_id, widenings }: LiquidationChanged): void {
    const order = order_id === null ? undefined : this.book.get(this.#seqOf(order_id))
    if (order !== undefined) this.book.replace({ ...order, widenings })
  }

  #match({ fills, closing }: BatchCleared): void {
    for (const { order_id, user_id, steps, held } of fills) {
      this.#changedAccounts.add(user_id as UserId)
      if (this.#staleAccounts.has(user_id as UserId)) continue
      const order = this.book.get(this.#seqOf(order_id))
      invariant(order !== undefined, 'a filled order is in the book')
      this.book.reduce(order.seq, steps as Steps, openedBy(this.#spec, order, BigInt(held) as Quote))
      if (this.book.get(order.seq) === undefined) this.#unindex(order_id, order.seq)
    }
    for (const { order_id } of closing) this.#remove(order_id)
  }

  /**
   * Matched steps have left the book already.
   * Unmatched fills and rollbacks change orders that only the table has.
   */
  #settle(row: PartSettled): void {
    for (const { order_id, status } of row.orders) if (status !== 'OPEN') this.#remove(order_id)
    for (const { user_id, matched } of row.fills) if (row.rollback || !matched) this.#markStale(user_id)
  }

  /** Orders of the row end or leave the book; a rollback restores them. */
  #move({ positions, orders = [], rollback }: PositionsMoved): void {
    for (const { user_id } of positions) {
      if (rollback) this.#markStale(user_id)
      else this.#changedAccounts.add(user_id as UserId)
    }
    for (const { order_id } of orders) this.#remove(order_id)
  }
}

/**
 * Opening steps of a fill, from its held amount; exact if that is the fill's share of the reservation.
 * If more is held, `reservation_changed` or the order's end follows.
 */
function openedBy(spec: MarketSpec, order: RestingOrder, held: Quote): Steps {
  if (held === 0n) return 0 as Steps
  return Number(held / reservationPerStep(spec, order)) as Steps
}

export const restingOrder = (order: BookOrder): RestingOrder => ({
  ...reservable(order),
  account: order.account,
  type: bookType(order.type),
  triggered: isConditional(order.type),
  forced: order.forced,
  widenings: order.widenings ?? 0,
  openable: order.openable,
  expiration: order.aliveUntil,
  acceptedAt: enteredBookAt(order),
})

export const waitingOrder = (order: BookOrder): WaitingOrder => ({
  ...reservable(order),
  account: order.account,
  type: order.type,
  trigger: order.trigger,
  openable: order.openable,
  expiration: order.aliveUntil,
})

const placedLive = (seq: Seq, row: OrderPlaced) => ({
  seq,
  account: row.user_id as UserId,
  side: row.side,
  limit: row.price as Ticks,
  remaining: row.quantity as Steps,
  leverage: row.leverage,
  reduceOnly: row.reduce_only,
  openable: row.openable as Steps,
  reservedPrice: row.reserved_price as Ticks,
  expiration: row.alive_until as Seconds,
})

const placedResting = (seq: Seq, row: OrderPlaced): RestingOrder => ({
  ...placedLive(seq, row),
  type: bookType(row.type),
  triggered: false,
  forced: row.forced ?? false,
  widenings: 0,
  acceptedAt: row.accepted_at as Millis,
})

const placedWaiting = (seq: Seq, row: OrderPlaced): WaitingOrder => ({
  ...placedLive(seq, row),
  type: row.type,
  trigger: row.trigger as Ticks,
})

const triggeredOrder = (seq: Seq, order: WaitingOrder, row: OrderTriggered): RestingOrder => {
  const { trigger: _, type, ...live } = order
  return {
    ...live,
    seq,
    type: bookType(type),
    triggered: true,
    forced: false,
    widenings: 0,
    openable: row.openable as Steps,
    reservedPrice: row.reserved_price as Ticks,
    acceptedAt: row.at as Millis,
  }
}

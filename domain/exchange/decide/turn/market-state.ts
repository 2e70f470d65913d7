/**
 * One market of a state in the form that its turn rules read: views over the tables, valid until the next row.
 */

import { NO_FUNDS } from '../../../auction/auction-turn.ts'
import { LiveBook } from '../../../book/live-book.ts'
import type { OpenOrder } from '../../../orders/open-order.ts'
import { orderIdOf } from '../../../orders/order.ts'
import type { Funds } from '../../../orders/recompute-reservations.ts'
import type { Address, MarketId, Seq, UserId } from '../../../units.ts'
import type { MatchedPositions } from '../../market-indexes.ts'
import { toOpenOrder } from '../../open-orders.ts'
import type { ExchangeState } from '../../state.ts'

/** Books of a state; the rules only read them. */
class StateBook extends LiveBook {
  override readonly book
  override readonly waiting
  override readonly liquidating
  readonly #marketId: MarketId
  readonly #triggered: ReadonlyMap<Seq, Seq>

  constructor(state: ExchangeState, marketId: MarketId) {
    super()
    const { book, waiting, triggered } = state.books.of(marketId)
    this.book = book
    this.waiting = waiting
    this.liquidating = state.marketIndexes.liquidating(marketId)
    this.#marketId = marketId
    this.#triggered = triggered
  }

  override idOf(seq: Seq): string {
    return orderIdOf(this.#marketId, this.acceptedOf(seq))
  }

  /** Acceptance sequence of an open or waiting order. */
  acceptedOf(seq: Seq): Seq {
    return this.#triggered.get(seq) ?? seq
  }
}

export class MarketState {
  readonly marketId: MarketId
  readonly live: StateBook
  readonly positions: MatchedPositions
  readonly #state: ExchangeState

  constructor(state: ExchangeState, marketId: MarketId) {
    this.#state = state
    this.marketId = marketId
    this.live = new StateBook(state, marketId)
    this.positions = state.marketIndexes.matched(marketId)
  }

  readonly fundsOf = (account: UserId): Funds => this.#state.accounts.get(account) ?? NO_FUNDS

  addressOf(account: UserId): Address {
    return this.#state.users.need(account).address
  }

  userOf(address: Address): UserId | undefined {
    return this.#state.userIds.get(address)
  }

  /** Open or waiting orders, by seq in the book. */
  orders(seqs: Iterable<Seq>): ReadonlyMap<Seq, OpenOrder> {
    const orders = new Map<Seq, OpenOrder>()
    for (const seq of seqs)
      orders.set(
        seq,
        toOpenOrder(this.#state, this.#state.orders.need(this.marketId, this.live.acceptedOf(seq))),
      )
    return orders
  }

  /** All orders of the accounts in this market that have not ended, by seq in the book. */
  liveOrders(accounts: Iterable<UserId>): OpenOrder[] {
    const rows = [...accounts].flatMap((account) => this.#state.orderIndex.liveOf(this.marketId, account))
    return rows.sort((a, b) => a.seq - b.seq).map((row) => toOpenOrder(this.#state, row))
  }

  /** Number of the account's reduce-only orders that have not ended. */
  countReduceOnly(account: UserId): number {
    return this.#state.orderIndex.liveOf(this.marketId, account).filter(({ reduceOnly }) => reduceOnly).length
  }

  /** Partial slots held by live orders, by account. */
  slots(accounts: Iterable<UserId>): ReadonlyMap<UserId, Set<number>> {
    const slots = new Map<UserId, Set<number>>()
    for (const account of accounts) {
      const taken = this.#state.orderIndex
        .liveOf(this.marketId, account)
        .flatMap(({ partialSlot }) => (partialSlot === null ? [] : [partialSlot]))
      if (taken.length > 0) slots.set(account, new Set(taken))
    }
    return slots
  }
}

/** Live orders of a market: orders in its book and orders that wait for a trigger. */
import { overdue } from '../auction/candidates.ts'
import type { Cancel } from '../auction/clearing.ts'
import type { Reservable } from '../orders/reservation.ts'
import type { Millis, Seq, Steps, UserId } from '../units.ts'
import type { Book } from './book.ts'
import type { TriggerBook } from './trigger-book.ts'

/** An open or waiting order with the fields that reservations need. */
export interface LiveOrder extends Reservable {
  readonly account: UserId
  readonly openable: Steps
}

export abstract class LiveBook {
  abstract readonly book: Book
  abstract readonly waiting: TriggerBook
  /** Accounts in liquidation with their liquidation numbers, by number. */
  abstract readonly liquidating: ReadonlyMap<UserId, Seq>

  /** Id of an open or waiting order. */
  abstract idOf(seq: Seq): string

  /** Accounts with open or waiting orders, ascending. */
  accounts(): UserId[] {
    return [...new Set([...this.book.accounts(), ...this.waiting.accounts()])].sort((a, b) => a - b)
  }

  get(seq: Seq): LiveOrder | undefined {
    return this.book.get(seq) ?? this.waiting.get(seq)
  }

  /** An account's open and waiting orders. */
  ordersOf(account: UserId): LiveOrder[] {
    return [...this.book.ordersOf(account), ...this.waiting.ordersOf(account)]
  }

  /**
   * Accounts of the forced orders in the book. An account without a liquidation had its order returned by a
   * void or a rollback.
   */
  forcedAccounts(): UserId[] {
    return [...this.book.marketOrders('LONG'), ...this.book.marketOrders('SHORT')]
      .filter(({ forced }) => forced)
      .map(({ account }) => account)
  }

  /**
   * Live orders that must end, by seq; at most `most`, orders beyond their time first.
   * These are expired orders, market orders beyond their wait, and orders above the market's maximum leverage.
   */
  overdue(asOf: Millis, most = Number.POSITIVE_INFINITY, maxLeverage = Number.POSITIVE_INFINITY): Cancel[] {
    const open = overdue(this.book, asOf, most)
    const expired = this.waiting.expired(asOf, most - open.length)
    const timed = [...open, ...expired.map((seq): Cancel => ({ seq, reason: 'EXPIRED' }))]
    const ends = new Map(timed.map((end) => [end.seq, end]))
    for (const index of [this.book, this.waiting]) {
      for (const seq of index.aboveLeverage(maxLeverage)) {
        if (ends.size >= most) break
        if (!ends.has(seq)) ends.set(seq, { seq, reason: 'LEVERAGE_CAP' })
      }
    }
    return [...ends.values()].sort((a, b) => a.seq - b.seq)
  }

  /** Open and waiting orders of a closed market, at most `most`, by account. */
  closed(most: number): Cancel[] {
    const ends: Cancel[] = []
    for (const account of this.accounts()) {
      for (const { seq } of this.ordersOf(account)) {
        if (ends.length >= most) return ends
        ends.push({ seq, reason: 'MARKET_CLOSED' })
      }
    }
    return ends
  }
}

/** Which of the resting orders can meet another in this batch. The rest of the book is not looked at. */

import type { Book, RestingOrder } from '../book/book.ts'
import type { Band } from '../market/band.ts'
import { isExpired, type Side } from '../orders/order.ts'
import { type Millis, maxOf, minOf, type Seq, type Ticks, type UserId } from '../units.ts'
import type { Cancel } from './clearing.ts'

/** A market order waits for a batch at most this long from its acceptance. */
export const MARKET_WAIT_MS = 2000

/** Orders that sit a batch out and stay as they are: those of an account whose adjustment is under way, or single ones. */
export interface Exclusions {
  readonly accounts: ReadonlySet<UserId>
  readonly orders: ReadonlySet<Seq>
}

export const NO_EXCLUSIONS: Exclusions = { accounts: new Set(), orders: new Set() }

/** Of either side the market orders first, by seq, then from the best limit, then by seq. */
export interface Candidates {
  readonly buys: readonly RestingOrder[]
  readonly sells: readonly RestingOrder[]
  /** Those of them that are market orders. */
  readonly marketOrders: readonly RestingOrder[]
}

const isWaitOver = ({ type, acceptedAt }: RestingOrder, asOf: Millis): boolean =>
  type === 'MARKET' && asOf - acceptedAt >= MARKET_WAIT_MS

/**
 * The orders that time has ended at `asOf`, by seq, whether a batch runs or not. They take no part in a batch even where they
 * are still in the book. Costs what it returns and one look at each market order.
 */
export function overdue(book: Book, asOf: Millis): Cancel[] {
  const expired = book.expired(asOf)
  const gone = new Set(expired)
  const waited = [...book.marketOrders('LONG'), ...book.marketOrders('SHORT')]
    .filter((order) => isWaitOver(order, asOf) && !gone.has(order.seq))
    .map(({ seq }): Cancel => ({ seq, reason: 'NO_BATCH_IN_TIME' }))
  const cancels = expired.map((seq): Cancel => ({ seq, reason: 'EXPIRED' })).concat(waited)
  return cancels.sort((a, b) => a.seq - b.seq)
}

/** The price an order takes part at before its account's risk is looked at: beyond the band on the aggressive side, the edge. */
export function bandLimit(order: RestingOrder, band: Band): Ticks {
  if (order.side === 'LONG') return order.type === 'MARKET' ? band.hi : minOf(order.limit, band.hi)
  return order.type === 'MARKET' ? band.lo : maxOf(order.limit, band.lo)
}

/**
 * All orders that reach the other side's best price. An order outside cannot trade, cannot set the price, and ranks behind
 * these for its account's position, so leaving it out changes nothing. Where the sides do not reach each other, the market
 * orders alone.
 */
export function candidatesOf(book: Book, band: Band, asOf: Millis, excluded: Exclusions): Candidates {
  const isEligible = (order: RestingOrder): boolean =>
    !isExpired(order.expiration, asOf) &&
    !isWaitOver(order, asOf) &&
    !excluded.accounts.has(order.account) &&
    !excluded.orders.has(order.seq)

  const marketBuys = book.marketOrders('LONG').filter(isEligible)
  const marketSells = book.marketOrders('SHORT').filter(isEligible)
  const highestBuy = marketBuys.length > 0 ? band.hi : bestLimit(book, 'LONG', band, isEligible)
  const lowestSell = marketSells.length > 0 ? band.lo : bestLimit(book, 'SHORT', band, isEligible)
  const marketOrders = [...marketBuys, ...marketSells]
  if (highestBuy === null || lowestSell === null || highestBuy < lowestSell) {
    return { buys: marketBuys, sells: marketSells, marketOrders }
  }
  return {
    marketOrders,
    buys: marketBuys.concat(limitsUpTo(book, 'LONG', lowestSell, isEligible)),
    sells: marketSells.concat(limitsUpTo(book, 'SHORT', highestBuy, isEligible)),
  }
}

type IsEligible = (order: RestingOrder) => boolean

function bestLimit(book: Book, side: Side, band: Band, isEligible: IsEligible): Ticks | null {
  for (const level of book.levels(side, side === 'LONG' ? band.lo : band.hi)) {
    const order = level.orders.find(isEligible)
    if (order !== undefined) return bandLimit(order, band)
  }
  return null
}

function limitsUpTo(book: Book, side: Side, worst: Ticks, isEligible: IsEligible): RestingOrder[] {
  const orders: RestingOrder[] = []
  for (const level of book.levels(side, worst)) {
    for (const order of level.orders) if (isEligible(order)) orders.push(order)
  }
  return orders
}

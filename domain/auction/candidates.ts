/**
 * Selects the resting orders that can trade in this batch. The auction does not read the rest of the book.
 */

import type { Book, RestingOrder } from '../book/book.ts'
import type { Band } from '../market/band.ts'
import { isExpired, type Side } from '../orders/order.ts'
import { type Millis, maxOf, minOf, type Seq, type Ticks, type UserId } from '../units.ts'
import type { Cancel, Protection } from './clearing.ts'

/**
 * Longest wait of a market or `ioc` order for a batch, from its acceptance or trigger. Afterwards the order
 * ends.
 * Forced orders have no such limit; their liquidation ends them.
 */
export const MARKET_WAIT_MS = 2000

/**
 * Orders that take no part in a batch and stay in the book unchanged: all orders of an account with an
 * adjustment in flight, or single orders.
 */
export interface Exclusions {
  readonly accounts: ReadonlySet<UserId>
  readonly orders: ReadonlySet<Seq>
  /**
   * If set, a matched step must have a forced order on this side; all other orders of the side, and all
   * other market orders, take no part.
   */
  readonly forcedOn?: Side
}

export const NO_EXCLUSIONS: Exclusions = { accounts: new Set(), orders: new Set() }

/** Candidates by side: market orders by seq, then limit orders from the best limit, then by seq. */
export interface Candidates {
  readonly buys: readonly RestingOrder[]
  readonly sells: readonly RestingOrder[]
  /** Market orders of both sides. */
  readonly marketOrders: readonly RestingOrder[]
  /** Worst candidate limit of each side; null if no limit order is a candidate. */
  readonly worst: { readonly LONG: Ticks | null; readonly SHORT: Ticks | null }
}

const isWaitOver = ({ type, forced, ioc, acceptedAt }: RestingOrder, asOf: Millis): boolean =>
  (type === 'MARKET' || ioc === true) && !forced && asOf - acceptedAt >= MARKET_WAIT_MS

/**
 * At most `most` orders that expired or waited too long at `asOf`, the latter first, each by seq. No batch includes
 * them, even while they are in the book.
 */
export function overdue(book: Book, asOf: Millis, most = Number.POSITIVE_INFINITY): Cancel[] {
  const timedOut = [...book.marketOrders('LONG'), ...book.marketOrders('SHORT'), ...book.iocOrders()]
    .filter((order) => isWaitOver(order, asOf) && !isExpired(order.expiration, asOf))
    .slice(0, most)
    .map(({ seq }): Cancel => ({ seq, reason: 'NO_BATCH_IN_TIME' }))
  const expired = book.expired(asOf, most - timedOut.length)
  const cancels = expired.map((seq): Cancel => ({ seq, reason: 'EXPIRED' })).concat(timedOut)
  return cancels.sort((a, b) => a.seq - b.seq)
}

type Protections = ReadonlyMap<Seq, Pick<Protection, 'price'>>

/**
 * Limit of an order before risk limits: the protection price of a market order; a limit beyond the band on
 * the aggressive side becomes the band edge.
 */
export function bandLimit(order: RestingOrder, { lo, hi }: Band, protections: Protections): Ticks {
  const limit = order.type === 'LIMIT' ? order.limit : protections.get(order.seq)?.price
  if (order.side === 'LONG') return limit === undefined ? hi : minOf(limit, hi)
  return limit === undefined ? lo : maxOf(limit, lo)
}

/**
 * Whether an order can take part in a batch at `asOf`.
 * The contract rejects orders above the maximum leverage; a forced order has no leverage.
 */
export const eligibility =
  (asOf: Millis, excluded: Exclusions, maxLeverage = Number.POSITIVE_INFINITY) =>
  (order: RestingOrder): boolean =>
    (order.leverage <= maxLeverage || order.forced) &&
    !isExpired(order.expiration, asOf) &&
    !isWaitOver(order, asOf) &&
    mayMeet(order, excluded.forcedOn) &&
    !excluded.accounts.has(order.account) &&
    !excluded.orders.has(order.seq)

const mayMeet = ({ forced, type, side }: RestingOrder, forcedOn: Side | undefined): boolean =>
  forced || forcedOn === undefined || (type === 'LIMIT' && side !== forcedOn)

export interface CandidateInput {
  readonly book: Book
  readonly band: Band
  readonly isEligible: (order: RestingOrder) => boolean
  readonly protections: Protections
}

/**
 * All orders that reach the opposite best price; only market orders if the sides do not cross. Other orders cannot
 * trade, set the price, or precede a candidate's use of the position.
 */
export function candidatesOf(input: CandidateInput): Candidates {
  const { book, isEligible } = input
  const marketBuys = book.marketOrders('LONG').filter(isEligible)
  const marketSells = book.marketOrders('SHORT').filter(isEligible)
  const highestBuy = bestPrice(input, 'LONG', marketBuys)
  const lowestSell = bestPrice(input, 'SHORT', marketSells)
  const marketOrders = [...marketBuys, ...marketSells]
  if (highestBuy === null || lowestSell === null || highestBuy < lowestSell) {
    return { buys: marketBuys, sells: marketSells, marketOrders, worst: { LONG: null, SHORT: null } }
  }
  return {
    marketOrders,
    buys: marketBuys.concat(limitsUpTo(input, 'LONG', lowestSell)),
    sells: marketSells.concat(limitsUpTo(input, 'SHORT', highestBuy)),
    worst: { LONG: lowestSell, SHORT: highestBuy },
  }
}

/** Most aggressive price of one side; null if no order of the side takes part. */
function bestPrice(
  { book, band, isEligible, protections }: CandidateInput,
  side: Side,
  marketOrders: readonly RestingOrder[],
): Ticks | null {
  const prices = marketOrders.map((order) => bandLimit(order, band, protections))
  for (const level of book.levels(side, side === 'LONG' ? band.lo : band.hi)) {
    const order = level.orders.find(isEligible)
    if (order === undefined) continue
    prices.push(bandLimit(order, band, protections))
    break
  }
  if (prices.length === 0) return null
  return prices.reduce((best, price) => (side === 'LONG' ? maxOf(best, price) : minOf(best, price)))
}

function limitsUpTo({ book, isEligible }: CandidateInput, side: Side, worst: Ticks): RestingOrder[] {
  const orders: RestingOrder[] = []
  for (const level of book.levels(side, worst)) {
    for (const order of level.orders) if (isEligible(order)) orders.push(order)
  }
  return orders
}

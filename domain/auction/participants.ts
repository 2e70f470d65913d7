/**
 * Groups the candidates by account, computes their limits, and removes self-trades and orders that cannot
 * trade.
 */
import type { RestingOrder } from '../book/book.ts'
import type { Seq, Steps, UserId } from '../units.ts'
import { bandLimit, type Candidates } from './candidates.ts'
import type { PositionCapacity } from './position-capacity.ts'
import { preventSelfTrades } from './self-trade.ts'
import {
  type BoundedOrder,
  boundOrder,
  byTrancheOrder,
  type MarketOrderBounds,
  openableNow,
  type RiskTerms,
} from './tranches.ts'

export interface Participant {
  readonly account: UserId
  readonly capacity: PositionCapacity
  /** In tranche order. */
  readonly orders: readonly BoundedOrder[]
  readonly selfTrades: readonly Seq[]
}

export function participantsOf(terms: RiskTerms, candidates: Candidates): Participant[] {
  const accounts = new Map<UserId, RestingOrder[]>()
  group(accounts, candidates.buys)
  group(accounts, candidates.sells)
  const participants: Participant[] = []
  for (const [account, orders] of accounts) {
    const capacity = terms.capacities.of(account, orders)
    const bounded = boundAll(terms, capacity, orders)
    participants.push({ account, capacity, orders: bounded.orders, selfTrades: bounded.selfTrades })
  }
  return participants
}

function group(accounts: Map<UserId, RestingOrder[]>, orders: readonly RestingOrder[]): void {
  for (const order of orders) {
    const own = accounts.get(order.account)
    if (own === undefined) accounts.set(order.account, [order])
    else own.push(order)
  }
}

interface BoundedOrders {
  readonly orders: readonly BoundedOrder[]
  readonly selfTrades: readonly Seq[]
}

const NONE: readonly never[] = []

function boundAll(
  terms: RiskTerms,
  capacity: PositionCapacity,
  orders: readonly RestingOrder[],
): BoundedOrders {
  return hasBothSides(orders)
    ? boundTwoSided(terms, capacity, orders)
    : { orders: boundInTrancheOrder(terms, capacity, orders, null), selfTrades: NONE }
}

function hasBothSides(orders: readonly RestingOrder[]): boolean {
  for (const { side } of orders) if (side !== orders[0]?.side) return true
  return false
}

function boundTwoSided(
  terms: RiskTerms,
  capacity: PositionCapacity,
  all: readonly RestingOrder[],
): BoundedOrders {
  const orders = all.filter((order) => canTrade(capacity, order, openableNow(terms, capacity, order)))
  const { retained, cancelled, marketOrderBounds } = preventSelfTrades(orders, (order) =>
    bandLimit(order, terms.band, terms.protections),
  )
  return { orders: boundInTrancheOrder(terms, capacity, retained, marketOrderBounds), selfTrades: cancelled }
}

/** The orders that can trade, with their limits, in tranche order. */
function boundInTrancheOrder(
  terms: RiskTerms,
  capacity: PositionCapacity,
  orders: readonly RestingOrder[],
  marketOrderBounds: MarketOrderBounds | null,
): BoundedOrder[] {
  const bounded: BoundedOrder[] = []
  for (const order of orders) {
    const openable = openableNow(terms, capacity, order)
    if (canTrade(capacity, order, openable))
      bounded.push(boundOrder(terms, capacity, { order, openable }, marketOrderBounds))
  }
  return bounded.length > 1 ? bounded.sort(byTrancheOrder) : bounded
}

/** Whether the order may open or reduce. Otherwise it can neither trade nor cause a self-trade. */
const canTrade = (capacity: PositionCapacity, order: RestingOrder, openable: Steps): boolean =>
  openable > 0 || order.side === capacity.reducingSide

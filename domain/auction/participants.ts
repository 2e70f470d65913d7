/** The accounts of a batch: their candidate orders, bounded, less those that have no room and those that would meet themselves. */
import type { RestingOrder } from '../book/book.ts'
import type { Position } from '../positions/position.ts'
import type { Seq, Steps, UserId } from '../units.ts'
import type { Candidates } from './candidates.ts'
import { FREE, type PositionCapacity } from './position-capacity.ts'
import { withoutSelfTrades } from './self-trade.ts'
import {
  type BoundedOrder,
  bound,
  inTrancheOrder,
  type MarketReach,
  openableNow,
  type RiskTerms,
} from './tranches.ts'

export interface Participant {
  readonly account: UserId
  readonly position: Position
  readonly standing: PositionCapacity
  /** In tranche order. */
  readonly orders: readonly BoundedOrder[]
  readonly selfTrades: readonly Seq[]
}

export function participantsOf(
  terms: RiskTerms,
  candidates: Candidates,
  positions: (account: UserId) => Position,
): Participant[] {
  const accounts = new Map<UserId, RestingOrder[]>()
  group(accounts, candidates.buys)
  group(accounts, candidates.sells)
  const participants: Participant[] = []
  for (const [account, orders] of accounts) {
    const position = positions(account)
    const standing = position.size === 0 ? FREE : terms.standings.of(position, orders)
    const bounded = boundAll(terms, standing, orders)
    participants.push({ account, position, standing, orders: bounded.orders, selfTrades: bounded.selfTrades })
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

interface Bounded {
  readonly orders: readonly BoundedOrder[]
  readonly selfTrades: readonly Seq[]
}

const NONE: readonly never[] = []

function boundAll(terms: RiskTerms, standing: PositionCapacity, orders: readonly RestingOrder[]): Bounded {
  return hasBothSides(orders)
    ? boundTwoSided(terms, standing, orders)
    : { orders: inTurn(terms, standing, orders, null), selfTrades: NONE }
}

function hasBothSides(orders: readonly RestingOrder[]): boolean {
  for (const { side } of orders) if (side !== orders[0]?.side) return true
  return false
}

function boundTwoSided(terms: RiskTerms, standing: PositionCapacity, all: readonly RestingOrder[]): Bounded {
  const orders = all.filter((order) => hasRoom(standing, order, openableNow(terms, standing, order)))
  const { kept, cancelled, reach } = withoutSelfTrades(orders)
  return { orders: inTurn(terms, standing, kept, reach), selfTrades: cancelled }
}

/** The orders that have room, with their limits, in tranche order. */
function inTurn(
  terms: RiskTerms,
  standing: PositionCapacity,
  orders: readonly RestingOrder[],
  reach: MarketReach | null,
): BoundedOrder[] {
  const bounded: BoundedOrder[] = []
  for (const order of orders) {
    const openable = openableNow(terms, standing, order)
    if (hasRoom(standing, order, openable)) bounded.push(bound(terms, standing, { order, openable }, reach))
  }
  return bounded.length > 1 ? bounded.sort(inTrancheOrder) : bounded
}

/** Without room at any price for all that its account holds, an order cannot trade, nor be in another's way. */
const hasRoom = (standing: PositionCapacity, order: RestingOrder, openable: Steps): boolean =>
  openable > 0 || order.side === standing.reducingSide

/** The accounts of a batch: their candidate orders less those that have no room and those that would meet themselves. */
import type { RestingOrder } from './book.ts'
import type { Candidates } from './candidates.ts'
import type { Position } from './position.ts'
import { withoutSelfTrades } from './self-trade.ts'
import { type MarketReach, openableNow, type RiskTerms, type Standing, standingOf } from './tranches.ts'
import type { Seq, UserId } from './units.ts'

export interface Participant {
  readonly standing: Standing
  readonly orders: readonly RestingOrder[]
  /** Null where the account has orders on one side only. */
  readonly reach: MarketReach | null
  readonly selfTrades: readonly Seq[]
}

/** By account, ascending. */
export function participantsOf(
  terms: RiskTerms,
  candidates: Candidates,
  positions: (account: UserId) => Position,
): Participant[] {
  const accounts = new Map<UserId, RestingOrder[]>()
  for (const side of [candidates.buys, candidates.sells]) {
    for (const order of side) {
      const orders = accounts.get(order.account)
      if (orders === undefined) accounts.set(order.account, [order])
      else orders.push(order)
    }
  }
  return [...accounts]
    .sort(([a], [b]) => a - b)
    .map(([account, orders]) => participantOf(terms, standingOf(terms, account, positions(account)), orders))
}

function participantOf(terms: RiskTerms, standing: Standing, all: readonly RestingOrder[]): Participant {
  const orders = all.filter((order) => hasRoom(terms, standing, order))
  const isOneSided = orders.every(({ side }) => side === orders[0]?.side)
  if (isOneSided) return { standing, orders, reach: null, selfTrades: [] }
  const { kept, cancelled, ...reach } = withoutSelfTrades(orders)
  return { standing, orders: kept, reach, selfTrades: cancelled }
}

/** An order that could trade at some price, for all that its account holds: only such an order can be in another's way. */
const hasRoom = (terms: RiskTerms, standing: Standing, order: RestingOrder): boolean =>
  order.side === standing.reducingSide || openableNow(terms, standing, order) > 0

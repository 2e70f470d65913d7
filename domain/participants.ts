/** The accounts of a batch: their candidate orders, bounded, less those that have no room and those that would meet themselves. */
import type { RestingOrder } from './book.ts'
import type { Candidates } from './candidates.ts'
import type { Position } from './position.ts'
import { withoutSelfTrades } from './self-trade.ts'
import { FREE, reducingSideOf, type Standing } from './standing.ts'
import { type BoundedOrder, bound, inTrancheOrder, openableNow, type RiskTerms } from './tranches.ts'
import type { Seq, Steps, UserId } from './units.ts'

export interface Participant {
  readonly account: UserId
  readonly position: Position
  readonly standing: Standing
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
    const standing = standingOf(terms, position, orders)
    const { bounded, selfTrades } = boundAll(terms, standing, orders)
    participants.push({ account, position, standing, orders: bounded, selfTrades })
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

const standingOf = (
  { standings }: RiskTerms,
  position: Position,
  orders: readonly RestingOrder[],
): Standing =>
  position.size === 0
    ? FREE
    : standings.of(position, {
        closes: orders.some(({ side }) => side === reducingSideOf(position)),
        opens: orders.some(({ openable }) => openable > 0),
      })

interface Bounded {
  readonly bounded: readonly BoundedOrder[]
  readonly selfTrades: readonly Seq[]
}

interface Room {
  readonly order: RestingOrder
  readonly openable: Steps
}

function boundAll(terms: RiskTerms, standing: Standing, orders: readonly RestingOrder[]): Bounded {
  const [only] = orders
  if (only !== undefined && orders.length === 1) return boundOne(terms, standing, only)
  const rooms: Room[] = []
  for (const order of orders) {
    const openable = openableNow(terms, standing, order)
    if (hasRoom(standing, order, openable)) rooms.push({ order, openable })
  }
  const isOneSided = rooms.every(({ order }) => order.side === rooms[0]?.order.side)
  if (isOneSided)
    return { bounded: inTurn(rooms.map((room) => bound(terms, standing, room, null))), selfTrades: [] }

  const { cancelled, reach } = withoutSelfTrades(rooms.map(({ order }) => order))
  const kept = rooms.filter(({ order }) => !cancelled.includes(order.seq))
  return { bounded: inTurn(kept.map((room) => bound(terms, standing, room, reach))), selfTrades: cancelled }
}

const NONE: readonly never[] = []

/** Most accounts have one order within reach. */
function boundOne(terms: RiskTerms, standing: Standing, order: RestingOrder): Bounded {
  const openable = openableNow(terms, standing, order)
  const isIn = hasRoom(standing, order, openable)
  return { bounded: isIn ? [bound(terms, standing, { order, openable }, null)] : NONE, selfTrades: NONE }
}

/** Without room at any price for all that its account holds, an order cannot trade, nor be in another's way. */
const hasRoom = (standing: Standing, order: RestingOrder, openable: Steps): boolean =>
  openable > 0 || order.side === standing.reducingSide

const inTurn = (orders: BoundedOrder[]): BoundedOrder[] =>
  orders.length > 1 ? orders.sort(inTrancheOrder) : orders

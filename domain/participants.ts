/** The accounts of a batch: their candidate orders, bounded, less those that have no room and those that would meet themselves. */
import type { RestingOrder } from './book.ts'
import type { Candidates } from './candidates.ts'
import { mayOpen } from './margin.ts'
import { bankruptcyPrice, FLAT, type Position } from './position.ts'
import { withoutSelfTrades } from './self-trade.ts'
import {
  type BoundedOrder,
  bound,
  inTrancheOrder,
  openableNow,
  type RiskTerms,
  type Standing,
} from './tranches.ts'
import type { Seq, Steps, Ticks, UserId } from './units.ts'

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
    participants.push(participantOf(terms, { account, position: positions(account), orders }))
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

interface Account {
  readonly account: UserId
  readonly position: Position
  readonly orders: readonly RestingOrder[]
}

function participantOf(terms: RiskTerms, { account, position, orders: all }: Account): Participant {
  const standing = standingOf(terms, position, all)
  const rooms = new Map<RestingOrder, Steps>()
  for (const order of all) {
    const openable = openableNow(terms, standing, order)
    // Without room at any price for all that its account holds, an order cannot trade, nor be in another's way.
    if (openable > 0 || order.side === standing.reducingSide) rooms.set(order, openable)
  }
  const orders = [...rooms.keys()]
  const isOneSided = orders.every(({ side }) => side === orders[0]?.side)
  const { kept, cancelled, reach } = isOneSided
    ? { kept: orders, cancelled: [], reach: null }
    : withoutSelfTrades(orders)
  const bounded = kept.map((order) =>
    bound(terms, standing, { order, openable: rooms.get(order) as Steps }, reach),
  )
  if (bounded.length > 1) bounded.sort(inTrancheOrder)
  return { account, position, standing, orders: bounded, selfTrades: cancelled }
}

const FREE: Standing = { size: FLAT.size, reducingSide: null, solvent: 0 as Ticks, mayOpen: true }

/** Only what the account's orders ask for is computed: the rest costs more than all else about an order. */
function standingOf(terms: RiskTerms, position: Position, orders: readonly RestingOrder[]): Standing {
  if (position.size === 0) return FREE
  const { spec, fundingIndex, oracle } = terms
  const reducingSide = position.size > 0 ? 'SHORT' : 'LONG'
  const closes = orders.some(({ side }) => side === reducingSide)
  const opens = orders.some(({ openable }) => openable > 0)
  return {
    size: position.size,
    reducingSide,
    solvent: closes ? bankruptcyPrice(spec, position, fundingIndex) : (0 as Ticks),
    mayOpen: opens && mayOpen(spec, position, fundingIndex, oracle),
  }
}

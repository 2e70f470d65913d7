/** What each order of an account may trade and up to which price: reducing before opening, never into bad debt or below IMR. */
import type { Band } from './band.ts'
import type { RestingOrder } from './book.ts'
import { bandLimit } from './candidates.ts'
import { mayOpen, openingBound } from './margin.ts'
import { type MarketSpec, priceOf } from './market.ts'
import type { Side } from './order.ts'
import { bankruptcyPrice, type Position } from './position.ts'
import { type FundingIndex, maxOf, minOf, type Price, type Steps, type Ticks, type UserId } from './units.ts'

/** `steps` that take part at any price up to (buy) or from (sell) `limit`. The limit lies in the band. */
export interface Tranche {
  readonly steps: Steps
  readonly limit: Ticks
}

/** An order as it takes part: what closes its account's position, and what opens or grows one. At least one is there. */
export interface Entry {
  readonly order: RestingOrder
  readonly reducing: Tranche | null
  readonly opening: Tranche | null
}

/** The batch's facts that bear on risk. */
export interface RiskTerms {
  readonly spec: MarketSpec
  readonly band: Band
  readonly oracle: Price
  readonly fundingIndex: FundingIndex
  /** Whether an account may open on the side that reduces its position, which a batch of several parts does not allow. */
  readonly mayFlip: boolean
}

/** What an account's position allows its orders. */
export interface Standing {
  readonly account: UserId
  readonly position: Position
  readonly reducingSide: Side | null
  /** The price beyond which a close would leave bad debt. Binds every order on the reducing side. */
  readonly solvent: Ticks
  readonly mayOpen: boolean
}

export function standingOf(terms: RiskTerms, account: UserId, position: Position): Standing {
  const { spec, fundingIndex, oracle } = terms
  if (position.size === 0) {
    return { account, position, reducingSide: null, solvent: 0 as Ticks, mayOpen: true }
  }
  return {
    account,
    position,
    reducingSide: position.size > 0 ? 'SHORT' : 'LONG',
    solvent: bankruptcyPrice(spec, position, fundingIndex),
    mayOpen: mayOpen(spec, position, fundingIndex, oracle),
  }
}

/** A market sell is margined at up to the oracle price: one reserved for less waits for a lower oracle price. */
export const awaitsOracle = ({ spec, oracle }: RiskTerms, order: RestingOrder): boolean =>
  order.type === 'MARKET' &&
  order.side === 'SHORT' &&
  order.openable > 0 &&
  spec.kind !== 'binary_future' &&
  priceOf(spec, order.reservedPrice) < oracle

/** What an order may open in this batch at most, before any price is looked at. */
export function openableNow(terms: RiskTerms, standing: Standing, order: RestingOrder): Steps {
  const isFlip = order.side === standing.reducingSide
  const isBarred =
    order.reduceOnly ||
    order.forced ||
    !standing.mayOpen ||
    (isFlip && !terms.mayFlip) ||
    awaitsOracle(terms, order)
  return isBarred ? (0 as Steps) : order.openable
}

/** How far the account's own limit orders let its market orders go: see `withoutSelfTrades`. */
export interface MarketReach {
  readonly marketBuyMost: Ticks
  readonly marketSellLeast: Ticks
}

/**
 * One account's entries in tranche order: the position's size is given out once, to forced orders first, then to the most
 * aggressive price, market before limit, reduce-only first, then by seq. At every price the orders that trade there thus hold as
 * much of it as they can use, and a distant take-profit does not keep a nearer order from closing.
 */
export function entriesOf(
  terms: RiskTerms,
  standing: Standing,
  orders: readonly RestingOrder[],
  reach: MarketReach | null,
): Entry[] {
  const limits = orders.map((order) => ({ order, limit: ownLimit(terms.band, order, reach) }))
  if (limits.length > 1) limits.sort((a, b) => inTrancheOrder(a, b))
  let capacity = Math.abs(standing.position.size)
  const entries: Entry[] = []
  for (const { order, limit } of limits) {
    const entry = entryOf(terms, standing, order, limit, capacity as Steps)
    if (entry === null) continue
    capacity -= entry.reducing?.steps ?? 0
    entries.push(entry)
  }
  return entries
}

function entryOf(
  terms: RiskTerms,
  standing: Standing,
  order: RestingOrder,
  limit: Ticks,
  capacity: Steps,
): Entry | null {
  const closes = order.side === standing.reducingSide
  const solvent = closes ? tighter(order.side, limit, standing.solvent) : limit
  const share = closes && isInBand(terms.band, order.side, solvent) ? minOf(order.remaining, capacity) : 0
  const rest = minOf((order.remaining - share) as Steps, openableNow(terms, standing, order))
  const reducing = share > 0 ? { steps: share as Steps, limit: solvent } : null
  const opening = rest > 0 ? openingTranche(terms, order, solvent, rest) : null
  return reducing === null && opening === null ? null : { order, reducing, opening }
}

/** Null where no price of the band leaves the share at IMR and within its reservation. */
function openingTranche(terms: RiskTerms, order: RestingOrder, limit: Ticks, steps: Steps): Tranche | null {
  const margined = tighter(order.side, limit, openingBound(terms.spec, order, terms.oracle))
  const isReserved = order.side === 'LONG' || terms.spec.kind === 'binary_future'
  const bound = isReserved ? tighter(order.side, margined, order.reservedPrice) : margined
  return isInBand(terms.band, order.side, bound) ? { steps, limit: bound } : null
}

function ownLimit(band: Band, order: RestingOrder, reach: MarketReach | null): Ticks {
  const limit = bandLimit(order, band)
  if (reach === null || order.type === 'LIMIT') return limit
  return tighter(order.side, limit, order.side === 'LONG' ? reach.marketBuyMost : reach.marketSellLeast)
}

const tighter = (side: Side, a: Ticks, b: Ticks): Ticks => (side === 'LONG' ? minOf(a, b) : maxOf(a, b))

/** A tightened limit can only have left the band on the passive side. */
const isInBand = ({ lo, hi }: Band, side: Side, limit: Ticks): boolean =>
  side === 'LONG' ? limit >= lo : limit <= hi

interface Limited {
  readonly order: RestingOrder
  readonly limit: Ticks
}

function inTrancheOrder(a: Limited, b: Limited): number {
  if (a.order.side !== b.order.side) return a.order.side === 'LONG' ? -1 : 1
  return (
    Number(b.order.forced) - Number(a.order.forced) ||
    (a.order.side === 'LONG' ? b.limit - a.limit : a.limit - b.limit) ||
    Number(b.order.type === 'MARKET') - Number(a.order.type === 'MARKET') ||
    Number(b.order.reduceOnly) - Number(a.order.reduceOnly) ||
    a.order.seq - b.order.seq
  )
}

/** Steps of the entry that trade at `price`. */
export function eligibleAt({ order, reducing, opening }: Entry, price: Ticks): Steps {
  const isBuy = order.side === 'LONG'
  const part = (tranche: Tranche | null): number =>
    tranche !== null && (isBuy ? tranche.limit >= price : tranche.limit <= price) ? tranche.steps : 0
  return (part(reducing) + part(opening)) as Steps
}

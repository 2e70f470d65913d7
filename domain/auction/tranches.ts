/** What each order of an account may trade and up to which price: reducing before opening, never into bad debt or below IMR. */

import type { RestingOrder } from '../book/book.ts'
import type { Band } from '../market/band.ts'
import { type MarketSpec, priceOf } from '../market/market.ts'
import type { Side } from '../orders/order.ts'
import { maxOf, minOf, type Price, type Steps, type Ticks } from '../units.ts'
import { bandLimit } from './candidates.ts'
import type { OpeningMargins } from './opening-margin.ts'
import type { PositionCapacities, PositionCapacity } from './position-capacity.ts'

/** The batch's facts that bear on risk. */
export interface RiskTerms {
  readonly spec: MarketSpec
  readonly band: Band
  readonly oracle: Price
  readonly openingMargins: OpeningMargins
  readonly capacities: PositionCapacities
}

/** How far the account's own limit orders let its market orders go: see `withoutSelfTrades`. */
export interface MarketOrderBounds {
  readonly highestBuy: Ticks
  readonly lowestSell: Ticks
}

/** An order with all that limits its price. A tranche's limit lies in the band, or is null where no price of the band will do. */
export interface BoundedOrder {
  readonly order: RestingOrder
  readonly capacity: PositionCapacity
  /** Of the order alone, in the band: ranks it for the position. */
  readonly limit: Ticks
  /** Null, too, where the account has no position to reduce with it. */
  readonly reducingLimit: Ticks | null
  readonly openingLimit: Ticks | null
  /** What it may open at most. */
  readonly openable: Steps
}

/** An order as it takes part: what closes its account's position, and what opens or grows one. Not both 0. */
export interface BatchEntry {
  readonly bounded: BoundedOrder
  readonly reducing: Steps
  readonly opening: Steps
}

/** A market sell is margined at up to the oracle price: one reserved for less waits for a lower oracle price. */
export const awaitsOracle = (
  { spec, oracle }: { readonly spec: MarketSpec; readonly oracle: Price },
  order: RestingOrder,
): boolean =>
  order.type === 'MARKET' &&
  order.side === 'SHORT' &&
  order.openable > 0 &&
  spec.kind !== 'binary_future' &&
  priceOf(spec, order.reservedPrice) < oracle

/** What an order may open in this batch at most: as much as its reservation covers at any price that the batch can have. */
export function openableNow(terms: RiskTerms, capacity: PositionCapacity, order: RestingOrder): Steps {
  const isBarred = order.reduceOnly || order.forced || !capacity.mayOpen || awaitsOracle(terms, order)
  return isBarred ? (0 as Steps) : terms.openingMargins.coveredSteps(order)
}

/**
 * The order's limits. Everything on the reducing side stops at the bankruptcy price, opening shares included: which of an
 * account's fills reduce is known only once all are, and they must not leave bad debt whichever they are. `openable`: what it
 * may open at most, see `openableNow`.
 */
export function boundOrder(
  terms: RiskTerms,
  capacity: PositionCapacity,
  { order, openable }: { readonly order: RestingOrder; readonly openable: Steps },
  marketOrderBounds: MarketOrderBounds | null,
): BoundedOrder {
  const { band } = terms
  const closes = order.side === capacity.reducingSide
  const limit = ownLimit(band, order, marketOrderBounds)
  const solvent = closes ? tighter(order.side, limit, capacity.bankruptcyLimit) : limit
  const opening = openable > 0 ? openingLimit(terms, order, solvent) : null
  return {
    order,
    capacity,
    limit,
    reducingLimit: closes && isInBand(band, order.side, solvent) ? solvent : null,
    openingLimit: opening !== null && isInBand(band, order.side, opening) ? opening : null,
    openable,
  }
}

function ownLimit(band: Band, order: RestingOrder, marketOrderBounds: MarketOrderBounds | null): Ticks {
  const limit = bandLimit(order, band)
  if (marketOrderBounds === null || order.type === 'LIMIT') return limit
  return tighter(
    order.side,
    limit,
    order.side === 'LONG' ? marketOrderBounds.highestBuy : marketOrderBounds.lowestSell,
  )
}

/** Up to which price the share stays at IMR and within its reservation. */
function openingLimit({ spec, openingMargins }: RiskTerms, order: RestingOrder, limit: Ticks): Ticks {
  const margined = tighter(order.side, limit, openingMargins.boundFor(order))
  const isReservedAtPrice = order.side === 'LONG' || spec.kind === 'binary_future'
  return isReservedAtPrice ? tighter(order.side, margined, order.reservedPrice) : margined
}

const tighter = (side: Side, a: Ticks, b: Ticks): Ticks => (side === 'LONG' ? minOf(a, b) : maxOf(a, b))

/** A tightened limit can only have left the band on the passive side. */
const isInBand = ({ lo, hi }: Band, side: Side, limit: Ticks): boolean =>
  side === 'LONG' ? limit >= lo : limit <= hi

/**
 * The order in which one account's orders get its position: forced first, then the most aggressive price, market before limit,
 * reduce-only first, then by seq. At every price the orders that trade there thus hold as much of it as they can use, and a
 * distant take-profit does not keep a nearer order from closing.
 */
export function byTrancheOrder(a: BoundedOrder, b: BoundedOrder): number {
  if (a.order.side !== b.order.side) return a.order.side === 'LONG' ? -1 : 1
  return (
    Number(b.order.forced) - Number(a.order.forced) ||
    (a.order.side === 'LONG' ? b.limit - a.limit : a.limit - b.limit) ||
    Number(b.order.type === 'MARKET') - Number(a.order.type === 'MARKET') ||
    Number(b.order.reduceOnly) - Number(a.order.reduceOnly) ||
    a.order.seq - b.order.seq
  )
}

/** An account's entries lie together, in tranche order. */
export interface BatchEntries {
  readonly buys: BatchEntry[]
  readonly sells: BatchEntry[]
}

/**
 * One account's entries in tranche order, appended to `entries`. The position's size is given out once; what an order does not
 * get of it, it may open. Without `mayFlip` no order opens on the side that reduces the position.
 */
export function addEntries(
  { buys, sells }: BatchEntries,
  capacity: PositionCapacity,
  orders: readonly BoundedOrder[],
  mayFlip: boolean,
): void {
  let reducible = Math.abs(capacity.size) as Steps
  for (const bounded of orders) {
    const { order, reducingLimit, openingLimit, openable } = bounded
    const reducing = reducingLimit === null ? (0 as Steps) : minOf(order.remaining, reducible)
    const isOpen = openingLimit !== null && (mayFlip || order.side !== capacity.reducingSide)
    const opening = isOpen ? minOf((order.remaining - reducing) as Steps, openable) : (0 as Steps)
    if (reducing + opening === 0) continue
    reducible = (reducible - reducing) as Steps
    const entries = order.side === 'LONG' ? buys : sells
    entries.push({ bounded, reducing, opening })
  }
}

/** Steps of the entry that trade at `price`. */
export function eligibleAt({ bounded, reducing, opening }: BatchEntry, price: Ticks): Steps {
  const isBuy = bounded.order.side === 'LONG'
  const reaches = (limit: Ticks | null): boolean =>
    limit !== null && (isBuy ? limit >= price : limit <= price)
  return ((reaches(bounded.reducingLimit) ? reducing : 0) +
    (reaches(bounded.openingLimit) ? opening : 0)) as Steps
}

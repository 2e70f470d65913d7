/**
 * Computes each order's tranches: how many steps may reduce or open, and up to which price.
 * The limits prevent bad debt and positions below IMR.
 */

import type { RestingOrder } from '../book/book.ts'
import { type Band, priceBand } from '../market/band.ts'
import { type MarketSpec, priceOf } from '../market/market.ts'
import { type OrderShare, shareOf } from '../orders/executable.ts'
import type { Side } from '../orders/order.ts'
import type { Position } from '../positions/position.ts'
import {
  type FundingIndex,
  maxOf,
  minOf,
  type Price,
  type Seq,
  type Steps,
  type Ticks,
  type UserId,
} from '../units.ts'
import { bandLimit } from './candidates.ts'
import type { Protection } from './clearing.ts'
import { OpeningMargins } from './opening-margin.ts'
import {
  type Capacities,
  FLAT_CAPACITY,
  PositionCapacities,
  type PositionCapacity,
} from './position-capacity.ts'

/** Batch parameters that limit risk. */
export interface RiskTerms {
  readonly spec: MarketSpec
  readonly band: Band
  readonly oracle: Price
  readonly openingMargins: OpeningMargins
  readonly capacities: Capacities
  /**
   * Protection of every market order in the batch. A market order without an entry reaches to the band edge.
   */
  readonly protections: ReadonlyMap<Seq, Protection>
}

/** A market at an oracle price, with the matched position of each account. */
export interface MarketState {
  readonly spec: MarketSpec
  readonly oracle: Price
  readonly fundingIndex: FundingIndex
  readonly positions: (account: UserId) => Position
}

/** Batch terms in this state, before protections are known. */
export function riskTermsAt({ spec, oracle, fundingIndex, positions }: MarketState): RiskTerms {
  const rules = new PositionCapacities(spec, priceBand(spec, oracle), oracle, fundingIndex)
  return riskTermsOf(spec, oracle, {
    of(account, orders) {
      const position = positions(account)
      return position.size === 0 ? FLAT_CAPACITY : rules.of(position, orders)
    },
  })
}

/** `riskTermsAt` with known capacities. */
export function riskTermsOf(spec: MarketSpec, oracle: Price, capacities: Capacities): RiskTerms {
  const band = priceBand(spec, oracle)
  const openingMargins = new OpeningMargins(spec, oracle, band)
  return { spec, band, oracle, protections: new Map(), openingMargins, capacities }
}

/**
 * Bounds that keep an account's market orders from crossing its own limit orders; see `preventSelfTrades`.
 */
export interface MarketOrderBounds {
  readonly highestBuy: Ticks
  readonly lowestSell: Ticks
}

/**
 * An order with its price limits. A tranche limit lies in the band; it is null if no price of the band is acceptable.
 */
export interface BoundedOrder {
  readonly order: RestingOrder
  readonly capacity: PositionCapacity
  /** The order's own limit, clamped to the band. It decides the order's rank for the position. */
  readonly limit: Ticks
  /** Limit of the reducing tranche; also null if the account has no position that the order could reduce. */
  readonly reducingLimit: Ticks | null
  readonly openingLimit: Ticks | null
  /** Maximum steps that the order may open. */
  readonly openable: Steps
}

/** Share with which an order takes part. At least one of its two tranches is above 0. */
export interface BatchEntry extends OrderShare {
  readonly bounded: BoundedOrder
}

/**
 * Whether a market sell waits for a lower oracle price, because its margin at this oracle price would exceed
 * its reservation.
 */
export const awaitsOracle = (
  { spec, oracle }: { readonly spec: MarketSpec; readonly oracle: Price },
  order: RestingOrder,
): boolean =>
  order.type === 'MARKET' &&
  order.side === 'SHORT' &&
  order.openable > 0 &&
  spec.kind !== 'binary_future' &&
  priceOf(spec, order.reservedPrice) < oracle

/**
 * Steps that an order may open in this batch: the steps that its reservation covers at every price of the band.
 */
export function openableNow(terms: RiskTerms, capacity: PositionCapacity, order: RestingOrder): Steps {
  const isBarred = order.reduceOnly || order.forced || !capacity.mayOpen || awaitsOracle(terms, order)
  return isBarred ? (0 as Steps) : terms.openingMargins.coveredSteps(order)
}

/** Computes the order's limits. `openable` is the result of `openableNow`. */
export function boundOrder(
  terms: RiskTerms,
  capacity: PositionCapacity,
  { order, openable }: { readonly order: RestingOrder; readonly openable: Steps },
  marketOrderBounds: MarketOrderBounds | null,
): BoundedOrder {
  const { band } = terms
  const closes = order.side === capacity.reducingSide
  const limit = ownLimit(terms, order, marketOrderBounds)
  // On the reducing side also the opening tranche stops at the bankruptcy price: which fills reduce is known only after
  // all fills, and no assignment may leave bad debt.
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

function ownLimit(
  { band, protections }: RiskTerms,
  order: RestingOrder,
  marketOrderBounds: MarketOrderBounds | null,
): Ticks {
  const limit = bandLimit(order, band, protections)
  if (marketOrderBounds === null || order.type === 'LIMIT') return limit
  const { highestBuy, lowestSell } = marketOrderBounds
  return tighter(order.side, limit, order.side === 'LONG' ? highestBuy : lowestSell)
}

/** Highest or lowest price at which an opening share meets IMR and stays within its reservation. */
function openingLimit({ spec, openingMargins }: RiskTerms, order: RestingOrder, limit: Ticks): Ticks {
  const margined = tighter(order.side, limit, openingMargins.boundFor(order))
  const isReservedAtPrice = order.side === 'LONG' || spec.kind === 'binary_future'
  return isReservedAtPrice ? tighter(order.side, margined, order.reservedPrice) : margined
}

const tighter = (side: Side, a: Ticks, b: Ticks): Ticks => (side === 'LONG' ? minOf(a, b) : maxOf(a, b))

/** Tightening can move a limit out of the band only on the passive side. */
const isInBand = ({ lo, hi }: Band, side: Side, limit: Ticks): boolean =>
  side === 'LONG' ? limit >= lo : limit <= hi

/**
 * Order in which one account's orders use its position. The most aggressive price goes first, so that a distant
 * take-profit does not keep a nearer order from closing.
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

/** Entries by side. Entries of one account are adjacent and in tranche order. */
export interface BatchEntries {
  readonly buys: BatchEntry[]
  readonly sells: BatchEntry[]
}

/**
 * Appends one account's entries, in tranche order. Each step of the position is assigned once. If `mayFlip` is false,
 * no order opens on the side that reduces the position.
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
    const isOpen = openingLimit !== null && (mayFlip || order.side !== capacity.reducingSide)
    const { reducing, opening } = shareOf(
      order.remaining,
      reducingLimit === null ? (0 as Steps) : reducible,
      isOpen ? openable : (0 as Steps),
    )
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

/**
 * Decides whether an order may be accepted at placement, from the market, the account, the oracle price and the time.
 */
import { type Band, priceBand } from '../market/band.ts'
import { type MarketMode, type MarketSpec, notionalAt, priceOf, quantityOf } from '../market/market.ts'
import { exposureOf, mayOpen, openingBound, ratioOf } from '../positions/margin.ts'
import {
  closingSteps,
  ENTRY_NOTIONAL_END,
  FOLDED_MARGIN_END,
  type Position,
  signOf,
} from '../positions/position.ts'
import {
  abs,
  type FundingIndex,
  type Millis,
  type Price,
  type Quote,
  type Steps,
  type Ticks,
  toDecimal,
} from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'
import { nearestOpeningLeverage, nearestOpeningPrice, opensBelowRequirement } from './opening-limit.ts'
import { isConditional, isExpired, isMarketType, type Order } from './order.ts'
import type { OrderRefusal } from './order-request.ts'
import { type Reservable, reducingCapacity, reservationPerStep, reservedPriceOf } from './reservation.ts'

/** Codes of `admit`, in check order. The list is closed. */
export type AdmissionCode =
  | 'MARKET_NOT_OPEN'
  | 'MARKET_ENDED'
  | 'ORACLE_STALE'
  | 'ORDER_EXPIRED'
  | 'MIN_ORDER_SIZE'
  | 'PRICE_BAND'
  | 'REDUCE_ONLY_NO_POSITION'
  | 'OPEN_ORDER_LIMIT'
  | 'MARGIN_REQUIREMENT'
  | 'POSITION_LIMIT'
  | 'INSUFFICIENT_MARGIN'

type Refusal = OrderRefusal<AdmissionCode>

/** Maximum open and waiting orders of one account in one market. */
export const MAX_OPEN_ORDERS = 500

/** Half of the safe integers; see `rangeRefusal`. */
const MAX_POSITION_STEPS = 2 ** 52

/** Totals over an account's live orders in one market. */
export interface RestingTotals {
  readonly count: number
  /** Remaining steps of plain orders on the side that reduces the position. */
  readonly reducing: Steps
  /** Steps that may open, and their notional at the reserved prices. */
  readonly openable: Steps
  readonly openNotional: Quote
  /** Wei reserved for the orders, including settling fills. */
  readonly reserved: Quote
}

export interface AdmissionInput {
  readonly spec: MarketSpec
  readonly mode: MarketMode
  /** Null if no fresh oracle price is available. */
  readonly oracle: Price | null
  readonly now: Millis
  /** Matched position, including unsettled fills. */
  readonly position: Position
  readonly fundingIndex: FundingIndex
  readonly resting: RestingTotals
  /** Free balance at the bank less all reservations, in wei. */
  readonly available: Quote
}

/** Input for an open market with a fresh oracle price. */
interface OpenMarketInput extends AdmissionInput {
  readonly oracle: Price
  readonly band: Band
}

/** The values that acceptance fixes; see `reservation.ts`. */
export interface AdmissionResult {
  readonly status: 'OPEN' | 'PENDING_TRIGGER'
  readonly openable: Steps
  readonly reservedPrice: Ticks
  readonly reserved: Quote
}

/** A live order with its reservation: steps that may open, and the wei reserved for them. */
export interface ReservedOrder extends Reservable {
  readonly openable: Steps
  readonly reserved: Quote
}

/** Computes the totals of an account's live orders in one market, for `AdmissionInput`. */
export function restingTotals(
  spec: MarketSpec,
  size: Steps,
  orders: readonly ReservedOrder[],
): RestingTotals {
  const sum = (of: (order: ReservedOrder) => bigint): Quote =>
    orders.reduce((total, order) => total + of(order), 0n) as Quote
  return {
    count: orders.length,
    reducing: (Math.abs(size) - reducingCapacity(size, orders)) as Steps,
    openable: orders.reduce((total, order) => total + order.openable, 0) as Steps,
    openNotional: sum((order) => notionalAt(spec, order.reservedPrice, order.openable)),
    reserved: sum((order) => order.reserved),
  }
}

/**
 * All placement checks that need market or account state, after `toOrder` and the signature check. The verdict is final
 * if the caller holds the market lock.
 */
export function admit(order: Order, input: AdmissionInput): Verdict<AdmissionResult, Refusal> {
  const closed = marketRefusal(input)
  if (closed !== null) return refuse(closed)
  if (input.oracle === null) return refuse(STALE)
  const { spec, oracle } = input
  const open = { ...input, oracle, band: priceBand(spec, oracle) }
  const refusal =
    expiryRefusal(order, open) ??
    sizeRefusal(order, open) ??
    bandRefusal(order, open) ??
    reduceOnlyRefusal(order, open) ??
    countRefusal(open)
  return refusal === null ? admitOpening(order, open) : refuse(refusal)
}

/** Remaining checks, for the steps that may open, if any. */
function admitOpening(order: Order, input: OpenMarketInput): Verdict<AdmissionResult, Refusal> {
  const { spec, band } = input
  const status = isConditional(order.type) ? 'PENDING_TRIGGER' : 'OPEN'
  const reservedPrice = reservedPriceOf(spec, order, band)
  const openable = openableOf(order, input)
  if (openable === 0) return accept({ status, openable, reservedPrice, reserved: 0n as Quote })

  const perStep = reservationPerStep(spec, { ...order, limit: order.price, reservedPrice })
  const opening = { openable, reservedPrice, perStep, reserved: (perStep * BigInt(openable)) as Quote }
  const refusal =
    requirementRefusal(order, input) ?? rangeRefusal(input, opening) ?? marginRefusal(order, input, opening)
  if (refusal !== null) return refuse(refusal)
  return accept({ status, openable, reservedPrice, reserved: opening.reserved })
}

/** Steps that may open. The order claims the remaining reducing capacity as the newest order. */
function openableOf(order: Order, { position, resting }: OpenMarketInput): Steps {
  if (order.reduceOnly) return 0 as Steps
  const closing = closingSteps(position.size, order.side, order.quantity)
  const capacity = Math.max(0, Math.abs(position.size) - resting.reducing)
  return (order.quantity - Math.min(closing, capacity)) as Steps
}

const STALE: Refusal = {
  code: 'ORACLE_STALE',
  field: 'market_id',
  expected: 'a fresh oracle price',
  received: 'none',
}

function marketRefusal({ mode }: AdmissionInput): Refusal | null {
  const field = 'market_id'
  if (mode === 'settling' || mode === 'settled') {
    return { code: 'MARKET_ENDED', field, expected: 'an open market', received: mode }
  }
  if (mode !== 'open') return { code: 'MARKET_NOT_OPEN', field, expected: 'an open market', received: mode }
  return null
}

function expiryRefusal({ expiration }: Order, { now }: OpenMarketInput): Refusal | null {
  if (!isExpired(expiration, now)) return null
  return {
    code: 'ORDER_EXPIRED',
    field: 'expiration_seconds',
    expected: `0, or at least ${Math.ceil(now / 1000)}`,
    received: String(expiration),
  }
}

/** An order below the minimum size is accepted only if it is reduce-only and closes the position exactly. */
function sizeRefusal(order: Order, { spec, position }: OpenMarketInput): Refusal | null {
  if (order.quantity >= spec.minQuantity) return null
  const isFullClose =
    order.reduceOnly && closingSteps(position.size, order.side, order.quantity) === Math.abs(position.size)
  if (isFullClose && position.size !== 0) return null
  const least = toDecimal(quantityOf(spec, spec.minQuantity))
  return {
    code: 'MIN_ORDER_SIZE',
    field: 'quantity',
    expected: `at least ${least}, or exactly the position with reduce_only`,
    received: toDecimal(quantityOf(spec, order.quantity)),
    nearestValid: least,
  }
}

/**
 * Rejects a limit beyond the band on the side that would trade at once.
 * A conditional limit is compared with the band around its trigger.
 */
function bandRefusal(order: Order, { spec, band: now }: OpenMarketInput): Refusal | null {
  if (isMarketType(order.type)) return null
  const band = isConditional(order.type) ? priceBand(spec, priceOf(spec, order.trigger)) : now
  const isBuy = order.side === 'LONG'
  if (isBuy ? order.price <= band.hi : order.price >= band.lo) return null
  const nearest = toDecimal(priceOf(spec, isBuy ? band.hi : band.lo))
  return {
    code: 'PRICE_BAND',
    field: 'price',
    expected: `${isBuy ? 'at most' : 'at least'} ${nearest}`,
    received: toDecimal(priceOf(spec, order.price)),
    nearestValid: nearest,
  }
}

/**
 * A conditional reduce-only order may precede the position that it will reduce; it is checked when it triggers.
 */
function reduceOnlyRefusal(order: Order, { position }: OpenMarketInput): Refusal | null {
  if (!order.reduceOnly || isConditional(order.type)) return null
  if (position.size * signOf(order.side) < 0) return null
  return {
    code: 'REDUCE_ONLY_NO_POSITION',
    field: 'reduce_only',
    expected: `a ${order.side === 'LONG' ? 'short' : 'long'} position`,
    received: position.size === 0 ? 'none' : position.size > 0 ? 'a long position' : 'a short position',
  }
}

function countRefusal({ resting }: OpenMarketInput): Refusal | null {
  if (resting.count < MAX_OPEN_ORDERS) return null
  const expected = `fewer than ${MAX_OPEN_ORDERS} open orders in this market`
  return { code: 'OPEN_ORDER_LIMIT', field: 'market_id', expected, received: String(resting.count) }
}

/**
 * Refuses to open below IMR: for the account's position, then for the opened share at the limit, or at every band price
 * of a market order.
 */
function requirementRefusal(order: Order, input: OpenMarketInput): Refusal | null {
  const { spec, position, fundingIndex, oracle, band } = input
  const needed = toDecimal(spec.imr)
  if (!mayOpen(spec, position, fundingIndex, oracle)) {
    const ratio = ratioOf(exposureOf(spec, position, fundingIndex, oracle))
    const expected = `a position with a margin ratio of at least ${needed}`
    return { code: 'MARGIN_REQUIREMENT', field: 'quantity', expected, received: toDecimal(ratio ?? 0n) }
  }
  // The oracle price differs when the order triggers, so `planMark` checks its limit then.
  if (isConditional(order.type)) return null
  if (order.type === 'LIMIT') return limitRequirementRefusal(order, input)
  const bound = openingBound(spec, { ...order, limit: order.price }, oracle)
  if (order.side === 'LONG' ? bound >= band.lo : bound <= band.hi) return null
  const expected = `a leverage that leaves a margin ratio of ${needed} at a price of the band`
  return { code: 'MARGIN_REQUIREMENT', field: 'leverage', expected, received: String(order.leverage) }
}

/** The nearest valid price keeps the order's leverage, and the nearest valid leverage keeps its price. */
function limitRequirementRefusal(order: Order, { spec, oracle }: OpenMarketInput): Refusal | null {
  const terms = { ...order, limit: order.price }
  if (!opensBelowRequirement(spec, terms, oracle)) return null
  const price = nearestOpeningPrice(spec, terms, oracle)
  const leverage = nearestOpeningLeverage(spec, terms, oracle)
  const nearest = price === null ? null : toDecimal(priceOf(spec, price))
  const bound = order.side === 'LONG' ? 'at most' : 'at least'
  const alternatives = [
    ...(nearest === null ? [] : [`${bound} ${nearest} at leverage ${order.leverage}`]),
    ...(leverage === null ? [] : [`a leverage of at most ${leverage}`]),
  ]
  return {
    code: 'MARGIN_REQUIREMENT',
    field: 'price',
    expected: alternatives.join(', or ') || `a margin ratio of at least ${toDecimal(spec.imr)} at the limit`,
    received: toDecimal(priceOf(spec, order.price)),
    ...(nearest !== null && { nearestValid: nearest }),
    ...(leverage !== null && { nearestValidLeverage: leverage }),
  }
}

interface OpeningShare {
  readonly openable: Steps
  readonly reservedPrice: Ticks
  readonly perStep: Quote
  readonly reserved: Quote
}

/**
 * The position that all live orders could create must fit half of its storage slot's range: a sell may fill above its
 * reserved price, and funding changes the folded margin while orders rest.
 */
function rangeRefusal({ spec, position, resting }: OpenMarketInput, opening: OpeningShare): Refusal | null {
  const steps = Math.abs(position.size) + resting.openable + opening.openable
  const added = notionalAt(spec, opening.reservedPrice, opening.openable)
  const notional = position.entryNotional + resting.openNotional + added
  const margin = abs(position.foldedMargin) + resting.reserved + opening.reserved
  const most = ENTRY_NOTIONAL_END / 2n
  if (steps < MAX_POSITION_STEPS && notional < most && margin < FOLDED_MARGIN_END / 2n) return null
  return {
    code: 'POSITION_LIMIT',
    field: 'quantity',
    expected: `with all open orders, a notional below ${toDecimal(most)} and a margin below half of it`,
    received: toDecimal(notional),
  }
}

/**
 * Compares margin and fee allowance of the opening steps with the available balance; closing steps need neither.
 */
function marginRefusal(
  order: Order,
  { spec, available }: OpenMarketInput,
  { openable, perStep, reserved }: OpeningShare,
): Refusal | null {
  if (reserved <= available) return null
  const affordable = available > 0n ? Number(available / perStep) : 0
  const most = order.quantity - openable + affordable
  return {
    code: 'INSUFFICIENT_MARGIN',
    field: 'quantity',
    expected: `an available balance of ${toDecimal(reserved)}`,
    received: toDecimal(available),
    ...(most >= spec.minQuantity && { nearestValid: toDecimal(quantityOf(spec, most as Steps)) }),
  }
}

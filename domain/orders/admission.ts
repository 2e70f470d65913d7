/**
 * Whether an order may enter the book: order x market x account x oracle x time. The server's checks at
 * placement.
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
import { isConditional, isExpired, isMarketType, type Order } from './order.ts'
import type { OrderRefusal } from './order-request.ts'
import { type Reservable, reducingCapacity, reservationPerStep, reservedPriceOf } from './reservation.ts'

/** Codes of `admit`, in the order of its checks. Closed list. */
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

/** Open and waiting orders that one account may have in one market. */
export const MAX_OPEN_ORDERS = 500

/** Half of the safe integers: see `rangeRefusal`. */
const MAX_POSITION_STEPS = 2 ** 52

/** What the account's live orders in this market come to. */
export interface RestingTotals {
  readonly count: number
  /** Remaining steps of plain orders on the side that reduces the position. */
  readonly reducing: Steps
  /** Steps that may open, and their notional at the prices they are reserved at. */
  readonly openable: Steps
  readonly openNotional: Quote
  /** What they hold back, settling fills included. */
  readonly reserved: Quote
}

export interface AdmissionInput {
  readonly spec: MarketSpec
  readonly mode: MarketMode
  /** Null while no fresh oracle price is known. */
  readonly oracle: Price | null
  readonly now: Millis
  /** The matched position: mined and unsettled fills together. */
  readonly position: Position
  readonly fundingIndex: FundingIndex
  readonly resting: RestingTotals
  /** Ledger free less all reservations. */
  readonly available: Quote
}

/** The same once the oracle price is known to be there. */
interface OpenMarketInput extends AdmissionInput {
  readonly oracle: Price
  readonly band: Band
}

/** What acceptance fixes: see `reservation.ts`. */
export interface AdmissionResult {
  readonly status: 'OPEN' | 'PENDING_TRIGGER'
  readonly openable: Steps
  readonly reservedPrice: Ticks
  readonly reserved: Quote
}

/** An order with what its reservation gives: how much of it opens, and what it holds back. */
export interface ReservedOrder extends Reservable {
  readonly openable: Steps
  readonly reserved: Quote
}

/** Sums up an account's live orders in one market, for `Admittance`. */
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
 * Every check at placement that needs the market's state or the account's; `toOrder` and the signature come
 * before it. Pure: under the market's lock the verdict is final. A refusal names the first rule broken.
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

/** What is left of the checks for the share that may open, if there is one. */
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

/** What is left to open once the order, the newest, has taken what is left of the reducing capacity. */
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

/** Only a reduce-only order over exactly the position may be smaller than the minimum. */
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
 * Beyond the band on the side that would trade at once. Conditional limits are measured where they will
 * trigger.
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
 * A conditional reduce-only order may wait for a position that is still to be opened: it is checked when it
 * triggers.
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
 * Nothing opens while the position is below IMR, nor where no price of the band would leave the opened share
 * at IMR. A conditional order meets another oracle price when it triggers, so only the first half binds it
 * here.
 */
function requirementRefusal(order: Order, input: OpenMarketInput): Refusal | null {
  const { spec, position, fundingIndex, oracle, band } = input
  const needed = toDecimal(spec.imr)
  if (!mayOpen(spec, position, fundingIndex, oracle)) {
    const ratio = ratioOf(exposureOf(spec, position, fundingIndex, oracle))
    const expected = `a position with a margin ratio of at least ${needed}`
    return { code: 'MARGIN_REQUIREMENT', field: 'quantity', expected, received: toDecimal(ratio ?? 0n) }
  }
  if (isConditional(order.type)) return null
  const bound = openingBound(spec, { ...order, limit: order.price }, oracle)
  if (order.side === 'LONG' ? bound >= band.lo : bound <= band.hi) return null
  const expected = `a leverage that leaves a margin ratio of ${needed} at a price of the band`
  return { code: 'MARGIN_REQUIREMENT', field: 'leverage', expected, received: String(order.leverage) }
}

interface OpeningShare {
  readonly openable: Steps
  readonly reservedPrice: Ticks
  readonly perStep: Quote
  readonly reserved: Quote
}

/**
 * The position that all live orders together could make must fit its storage slot. Only half of the slot is
 * given out here: a sell may fill above the price it is reserved at, and funding moves the folded margin
 * while orders rest.
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

/** Margin and fee allowance of what opens; what closes is free of both. */
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

/**
 * Computes equity and margin ratios at the oracle price. Twin of the contract's MarginLib.
 * Ratios are compared by cross-multiplication, so that rounding never decides a liquidation.
 */
import { type MarketSpec, notionalAt, oneInTicks, priceOf } from '../market/market.ts'
import type { Side } from '../orders/order.ts'
import {
  divCeil,
  divFloor,
  type FundingIndex,
  ONE,
  type Price,
  type Quote,
  type Rate,
  type Steps,
  type Ticks,
} from '../units.ts'
import { marginOf, type Position } from './position.ts'

/** Liquidation starts below MMR + this buffer: half a percentage point. */
export const LIQUIDATION_BUFFER = 5_000_000_000_000_000n as Rate

/** Equity and notional in wei × 1e18; exact for any oracle price. */
export interface Exposure {
  readonly equity: bigint
  readonly notional: bigint
}

/** Notional price: the oracle price; for a binary short, its largest loss 1 - oracle price. */
const requirementPrice = (spec: MarketSpec, size: Steps, oracle: Price): bigint =>
  spec.kind === 'binary_future' && size < 0 ? ONE - oracle : oracle

/** Long: margin + value - entry. Short: margin + entry - value. Margin includes all funding up to `index`. */
export function exposureOf(
  spec: MarketSpec,
  position: Position,
  index: FundingIndex,
  oracle: Price,
): Exposure {
  const size = BigInt(position.size)
  const entry = position.size > 0 ? position.entryNotional : -position.entryNotional
  const steps = size < 0n ? -size : size
  return {
    equity: (marginOf(position, index) - entry) * ONE + size * spec.step * oracle,
    notional: steps * spec.step * requirementPrice(spec, position.size, oracle),
  }
}

/** Equity in wei, rounded down. */
export const equityOf = (spec: MarketSpec, position: Position, index: FundingIndex, oracle: Price): Quote =>
  divFloor(exposureOf(spec, position, index, oracle).equity, ONE) as Quote

/** equity / notional >= rate. True for a flat account. */
export const isRatioAtLeast = ({ equity, notional }: Exposure, rate: Rate): boolean =>
  equity * ONE >= rate * notional

/** after.equity / after.notional >= before.equity / before.notional. Neither account may be flat. */
export const isRatioNotWorse = (before: Exposure, after: Exposure): boolean =>
  after.equity * before.notional >= before.equity * after.notional

/**
 * The ratio × 1e18 for display and ranking, rounded down; null if the notional is 0. Decisions must not use
 * it.
 */
export const ratioOf = ({ equity, notional }: Exposure): Rate | null =>
  notional === 0n ? null : (divFloor(equity * ONE, notional) as Rate)

/**
 * Whether the margin covers the largest loss of a binary position: price 0 for a long, price 1 for a short.
 */
export function isFullyCollateralised(spec: MarketSpec, position: Position, index: FundingIndex): boolean {
  if (spec.kind !== 'binary_future') return false
  const margin = marginOf(position, index)
  if (position.size >= 0) return margin >= position.entryNotional
  const payout = notionalAt(spec, oneInTicks(spec), -position.size as Steps)
  return margin + position.entryNotional >= payout
}

/** Whether the account may open: it is flat, at or above IMR, or fully collateralised. */
export const mayOpen = (spec: MarketSpec, position: Position, index: FundingIndex, oracle: Price): boolean =>
  position.size === 0 ||
  isRatioAtLeast(exposureOf(spec, position, index, oracle), spec.imr) ||
  isFullyCollateralised(spec, position, index)

/**
 * Whether the ratio is below `rate` and the position could lose more than its margin.
 * With `spec.mmr`, this is the contract's condition for an inheritance by the backstop.
 */
export const isBelow = (
  spec: MarketSpec,
  position: Position,
  index: FundingIndex,
  oracle: Price,
  rate: Rate,
): boolean =>
  position.size !== 0 &&
  !isRatioAtLeast(exposureOf(spec, position, index, oracle), rate) &&
  !isFullyCollateralised(spec, position, index)

/** Eligible for liquidation: ratio < MMR + buffer. */
export const isLiquidatable = (
  spec: MarketSpec,
  position: Position,
  index: FundingIndex,
  oracle: Price,
): boolean => isBelow(spec, position, index, oracle, (spec.mmr + LIQUIDATION_BUFFER) as Rate)

/**
 * Whether an account's ratio meets IMR after its fills of a part; if no fill grew, opened or flipped the position
 * (`opened`), whether the ratio is not worse. Closes favour the remaining position.
 */
export function isHealthyAfterFills(
  spec: MarketSpec,
  fills: { readonly before: Position; readonly after: Position; readonly opened: boolean },
  index: FundingIndex,
  oracle: Price,
): boolean {
  if (mayOpen(spec, fills.after, index, oracle)) return true
  if (fills.opened) return false
  return isRatioNotWorse(
    exposureOf(spec, fills.before, index, oracle),
    exposureOf(spec, fills.after, index, oracle),
  )
}

/** Marks a buy without an upper bound: every batch price is lower. */
export const NO_UPPER_BOUND = Number.MAX_SAFE_INTEGER as Ticks

/**
 * The highest p with p(1 - 1/L) <= reference × (1 - IMR), for a share margined at p: the bound of a buy. Null for L =
 * 1, which has no bound.
 */
function highestSelfMargined(spec: MarketSpec, reference: bigint, leverage: number): bigint | null {
  if (leverage === 1) return null
  const factor = BigInt(leverage)
  return (reference * (ONE - spec.imr) * factor) / (ONE * (factor - 1n))
}

/**
 * The lowest price at which a sell meets IMR at the oracle price.
 * A limit sell is margined at its signed limit, a market sell at the price itself.
 */
function lowestSell(spec: MarketSpec, limit: Ticks, leverage: number, oracle: Price): bigint {
  const factor = BigInt(leverage)
  const needed = oracle * (ONE + spec.imr)
  // Market sell: p >= O(1+IMR)/(1+1/L), which requires IMR × L <= 1 (listing rule). Limit sell: p >= O(1+IMR) -
  // limit/L.
  if (limit === 0) return divCeil(needed * factor, ONE * (factor + 1n))
  return divCeil(needed * factor - priceOf(spec, limit) * ONE, ONE * factor)
}

/**
 * Highest price of a buy, or lowest price of a sell, in ticks, at which an opening share meets IMR at the oracle price,
 * rounded to the safe side. The share's size does not matter.
 */
export function openingBound(
  spec: MarketSpec,
  order: { readonly side: Side; readonly limit: Ticks; readonly leverage: number },
  oracle: Price,
): Ticks {
  if (order.side === 'LONG') {
    const highest = highestSelfMargined(spec, oracle, order.leverage)
    return highest === null ? NO_UPPER_BOUND : (Number(highest / spec.tick) as Ticks)
  }
  if (spec.kind !== 'binary_future')
    return atLeastZero(lowestSell(spec, order.limit, order.leverage, oracle), spec)
  // A binary short is a buy of NO at 1 - p against 1 - O.
  const highestNo = highestSelfMargined(spec, ONE - oracle, order.leverage)
  return highestNo === null ? (0 as Ticks) : atLeastZero(ONE - highestNo, spec)
}

const atLeastZero = (price: bigint, spec: MarketSpec): Ticks =>
  (price > 0n ? Number(divCeil(price, spec.tick)) : 0) as Ticks

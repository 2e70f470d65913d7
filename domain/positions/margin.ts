/**
 * Equity, margin ratio and the requirements on them, at the oracle price. Ratios are compared, never
 * computed: both sides are multiplied out, so that no rounding decides who is liquidated. Mirrors the
 * contract's risk library.
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

/**
 * A position is eligible for liquidation below the maintenance requirement plus this: half a percentage
 * point.
 */
export const LIQUIDATION_BUFFER = 5_000_000_000_000_000n as Rate

/** Equity and the notional it is measured against, both in wei x 1e18: exact for any oracle price. */
export interface Exposure {
  readonly equity: bigint
  readonly notional: bigint
}

/**
 * The price a side's notional is counted at: the oracle price; for a binary short, what it can lose, 1 less
 * that.
 */
const requirementPrice = (spec: MarketSpec, size: Steps, oracle: Price): bigint =>
  spec.kind === 'binary_future' && size < 0 ? ONE - oracle : oracle

/** Long: margin + value - entry. Short: margin + entry - value. After all funding up to `index`. */
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

/** Equity in wei, down. */
export const equityOf = (spec: MarketSpec, position: Position, index: FundingIndex, oracle: Price): Quote =>
  divFloor(exposureOf(spec, position, index, oracle).equity, ONE) as Quote

/** equity / notional >= rate. A flat account meets every rate. */
export const isRatioAtLeast = ({ equity, notional }: Exposure, rate: Rate): boolean =>
  equity * ONE >= rate * notional

/** after's ratio >= before's. Both must be of an account that is not flat. */
export const isRatioNotWorse = (before: Exposure, after: Exposure): boolean =>
  after.equity * before.notional >= before.equity * after.notional

/** The ratio for display and ranking, down; null where there is no notional. Never decide by it. */
export const ratioOf = ({ equity, notional }: Exposure): Rate | null =>
  notional === 0n ? null : (divFloor(equity * ONE, notional) as Rate)

/** Margin covers the largest possible loss of a binary position: price 0 for a long, price 1 for a short. */
export function isFullyCollateralised(spec: MarketSpec, position: Position, index: FundingIndex): boolean {
  if (spec.kind !== 'binary_future') return false
  const margin = marginOf(position, index)
  if (position.size >= 0) return margin >= position.entryNotional
  const payout = notionalAt(spec, oneInTicks(spec), -position.size as Steps)
  return margin + position.entryNotional >= payout
}

/**
 * Flat, or equity at the initial requirement or above, or nothing to lose: what every opening presupposes.
 */
export const mayOpen = (spec: MarketSpec, position: Position, index: FundingIndex, oracle: Price): boolean =>
  position.size === 0 ||
  isRatioAtLeast(exposureOf(spec, position, index, oracle), spec.imr) ||
  isFullyCollateralised(spec, position, index)

/**
 * Below `rate` and able to lose more than its margin. With `spec.mmr` it is the chain's condition for the
 * backstop.
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
 * The rule after an account's fills of a part: the ratio meets IMR, or nothing was opened and the ratio is
 * not worse. Closing keeps the ratio of the rest or improves it (the roundings favour the rest), so a pure
 * close always passes. `opened`: whether any fill grew the position, opened one or flipped it.
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

/** No bound on a buy: any price a batch can have is lower. */
export const NO_UPPER_BOUND = Number.MAX_SAFE_INTEGER as Ticks

/**
 * highest p with p(1 - 1/L) <= reference(1 - IMR), for a share margined at p. Null where there is none (L =
 * 1).
 */
function highestSelfMargined(spec: MarketSpec, reference: bigint, leverage: number): bigint | null {
  if (leverage === 1) return null
  const times = BigInt(leverage)
  return (reference * (ONE - spec.imr) * times) / (ONE * (times - 1n))
}

/** p such that the margin at the signed limit, or at p itself, brings a sell to IMR at the oracle price. */
function lowestSell(spec: MarketSpec, limit: Ticks, leverage: number, oracle: Price): bigint {
  const times = BigInt(leverage)
  const needed = oracle * (ONE + spec.imr)
  if (limit === 0) return divCeil(needed * times, ONE * (times + 1n))
  return divCeil(needed * times - priceOf(spec, limit) * ONE, ONE * times)
}

/**
 * The price up to which (buy) or from which (sell) an opening share meets IMR at the oracle price on its own,
 * in ticks, rounded to the safe side; the ratio does not depend on the size of the fill, and a position at
 * IMR or above stays there when such a share joins it. `limit` is the signed price, 0 for a market order.
 * Buy: `NO_UPPER_BOUND` if none. Sell: 0 if none. Buy p <= O(1-IMR)/(1-1/L); limit sell p >= O(1+IMR) -
 * limit/L; market sell p >= O(1+IMR)/(1+1/L), which presupposes IMR x L <= 1 (listing rule); a binary short
 * is a buy of NO at 1-p against 1-O.
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
  const highestNo = highestSelfMargined(spec, ONE - oracle, order.leverage)
  return highestNo === null ? (0 as Ticks) : atLeastZero(ONE - highestNo, spec)
}

const atLeastZero = (price: bigint, spec: MarketSpec): Ticks =>
  (price > 0n ? Number(divCeil(price, spec.tick)) : 0) as Ticks

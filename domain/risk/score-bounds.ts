/** Bounds, in doubles, of many counterparties' scores, so that only few are ranked exactly. */

import type { MarketSpec } from '../market/market.ts'
import type { Position } from '../positions/position.ts'
import { type FundingIndex, ONE, type Price } from '../units.ts'
import { BinaryHeap } from './binary-heap.ts'
import type { SideKeys } from './side-keys.ts'

/** Bound of the relative error of a sum, as a fraction of the sum of its operands. */
const SUM_ERROR = 16 * Number.EPSILON
/** Bound of the relative error of the products and quotients of a score. */
const PRODUCT_ERROR = 1e-12
/**
 * Upper bound of each rounding in `scoreOf`. The score rounds three times; the first rounding is multiplied
 * by the leverage.
 */
const SCORE_UNIT = 1e-18
/** Wei per step by which close roundings can change a counterparty's proceeds. */
const CLOSE_ROUNDING = 4

/** A market's specification in force, its funding index and its oracle price. */
export interface RiskPrices {
  readonly spec: MarketSpec
  readonly index: FundingIndex
  readonly oracle: Price
}

/** Bounds by index in the side's columns. */
export interface ScoreBounds {
  /** Lower bound of the score if the position certainly qualifies; otherwise below -1. */
  readonly low: Float64Array
  /** Upper bound of the score; -1 if the position certainly does not qualify. */
  readonly high: Float64Array
}

const NONE = -1

/**
 * Score bounds of all positions of `side` as counterparties of `position`.
 * A counterparty has profit and equity, and can pay its bankruptcy price.
 */
export function scoreBounds(
  { spec, index, oracle }: RiskPrices,
  position: Position,
  side: SideKeys,
): ScoreBounds {
  const { keys, entries } = side.columns
  const isShort = position.size > 0
  const value = Number(spec.step * oracle) / 1e18
  const atStake = isShort && spec.kind === 'binary_future' ? Number(spec.step * (ONE - oracle)) / 1e18 : value
  const funding = Number(index)
  // Equity per step is this value less the key. Long: value - funding. Short: funding - value, with a negated key.
  const equityOfKeyZero = isShort ? funding - value : value - funding
  const worst = worstKey(position)
  const low = new Float64Array(keys.length)
  const high = new Float64Array(keys.length)
  for (let place = 0; place < keys.length; place++) {
    const key = keys[place] as number
    const entry = entries[place] as number
    const profit = isShort ? entry - value : value - entry
    const equity = equityOfKeyZero - key
    const profitError = (value + entry) * SUM_ERROR
    const equityError = (value + Math.abs(funding) + Math.abs(key)) * SUM_ERROR
    const payError = (Math.abs(worst) + Math.abs(key)) * SUM_ERROR + CLOSE_ROUNDING
    const mayQualify = profit > -profitError && equity > -equityError && key <= worst + payError && entry > 0
    const qualifies = profit > profitError && equity > equityError && key <= worst - payError
    const leverage = atStake / (equity - equityError)
    high[place] = !mayQualify
      ? NONE
      : equity > equityError
        ? ((profit + profitError) / entry) * leverage * (1 + PRODUCT_ERROR)
        : Number.POSITIVE_INFINITY
    low[place] = qualifies
      ? ((profit - profitError) / entry) * (atStake / (equity + equityError)) * (1 - PRODUCT_ERROR) -
        (leverage + 2) * SCORE_UNIT
      : Number.NEGATIVE_INFINITY
  }
  return { low, high }
}

/**
 * Largest key of a counterparty that can pay the bankruptcy price. At equal funding index, the comparison of
 * prices is a comparison of keys.
 */
function worstKey({ size, entryNotional, foldedMargin }: Position): number {
  const own = size > 0 ? foldedMargin - entryNotional : entryNotional + foldedMargin
  return Number(own) / Math.abs(size)
}

/** The `count`th largest value; minus infinity if there are at most `count` values. */
export function nthLargest(values: Float64Array, count: number): number {
  if (values.length <= count) return Number.NEGATIVE_INFINITY
  const largest = new BinaryHeap<number>((a, b) => a - b)
  for (let at = 0; at < values.length; at++) {
    const value = values[at] as number
    if (at >= count && value <= (largest.first as number)) continue
    if (at >= count) largest.pop()
    largest.push(value)
  }
  return largest.first as number
}

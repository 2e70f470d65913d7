/**
 * Rules of margin and leverage adjustments: how much may move between the free balance and a position.
 * Amounts are wei. The bank checks the free balance. Twin of the contract's AdjustLib.
 */

import { type MarketSpec, notionalAt, oneInTicks } from '../market/market.ts'
import {
  abs,
  divCeil,
  divFloor,
  type FundingIndex,
  maxOf,
  minOf,
  ONE,
  type Price,
  type Quote,
  type Steps,
} from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'
import { exposureOf, isFullyCollateralised, isLiquidatable } from './margin.ts'
import { marginOf, outOfRangeField, type Position } from './position.ts'

/** Remove modes; the index is the signed value, 0 or 1. */
export const REMOVE_MODES = ['exact', 'up_to'] as const
export type RemoveMode = (typeof REMOVE_MODES)[number]

export interface MarginAdjustment {
  /** Positive: adds margin; negative: removes margin. */
  readonly amount: Quote
  /** `up_to` removes the removable margin up to the amount; allowed only for a negative amount. */
  readonly removeMode: RemoveMode
  /** Minimum moved amount, in either direction; the adjustment is refused below it. */
  readonly minAmount: Quote
}

export interface LeverageAdjustment {
  readonly leverage: number
  /** Maximum debit of the free balance. */
  readonly maxMarginIn: Quote
  /** Minimum credit to the free balance. */
  readonly minMarginOut: Quote
}

export interface AdjustTerms {
  /** Funding index of the market's last action. */
  readonly fundingIndex: FundingIndex
  readonly oracle: Price
}

export interface AdjustmentResult {
  readonly position: Position
  /** Wei moved from the free balance into the position; negative in the other direction. */
  readonly moved: Quote
}

type OutOfRange = {
  readonly code: 'OUT_OF_RANGE'
  readonly field: 'size' | 'entryNotional' | 'foldedMargin'
}

export type MarginRefusal =
  | { readonly code: 'NO_POSITION' }
  /** The amount is 0, or nothing is removable. */
  | { readonly code: 'NOTHING_MOVES' }
  /** `up_to` was used with a positive amount. */
  | { readonly code: 'REMOVE_MODE' }
  | { readonly code: 'ABOVE_REMOVABLE'; readonly maxRemovable: Quote; readonly received: Quote }
  | { readonly code: 'BELOW_MINIMUM'; readonly minAmount: Quote; readonly moves: Quote }
  /** The position is eligible for liquidation, and the addition does not reach IMR. */
  | { readonly code: 'ADDITION_INSUFFICIENT'; readonly needed: Quote; readonly received: Quote }
  | OutOfRange

export type LeverageRefusal =
  | { readonly code: 'LEVERAGE_OUT_OF_RANGE'; readonly maxLeverage: number; readonly received: number }
  | { readonly code: 'MARGIN_IN_ABOVE_MAXIMUM'; readonly maxMarginIn: Quote; readonly needed: Quote }
  | { readonly code: 'MARGIN_OUT_BELOW_MINIMUM'; readonly minMarginOut: Quote; readonly available: Quote }
  | OutOfRange

// ---------------------------------------------------------------------- requirements

/**
 * Equity less `required` (both wei × 1e18) in whole wei, rounded down.
 * Positive: this much could leave the position. Negative: its absolute value is missing.
 */
const excessEquity = (equity: bigint, required: bigint): bigint => divFloor(equity - required, ONE)

const initialRequirement = (spec: MarketSpec, notional: bigint): bigint => divCeil(notional * spec.imr, ONE)

/**
 * Equity at which the notional has this leverage, rounded up. By the listing rule it is never below the
 * initial requirement.
 */
const leverageRequirement = (notional: bigint, leverage: number): bigint =>
  divCeil(notional, BigInt(leverage))

/** Largest loss of a binary position, in wei. */
function maximumLoss(spec: MarketSpec, { size, entryNotional }: Position): bigint {
  if (size >= 0) return entryNotional
  return notionalAt(spec, oneInTicks(spec), -size as Steps) - entryNotional
}

/**
 * Maximum removal in wei, rounded down. The ratio stays at or above IMR and 1 / leverage.
 * Margin stays at or above zero: unrealised profit is never paid out. Full collateral stays full.
 */
export function maxRemovable(
  spec: MarketSpec,
  position: Position,
  { fundingIndex, oracle }: AdjustTerms,
): Quote {
  if (position.size === 0) return 0n as Quote
  const margin = marginOf(position, fundingIndex)
  const { equity, notional } = exposureOf(spec, position, fundingIndex, oracle)
  const required = maxOf(initialRequirement(spec, notional), leverageRequirement(notional, position.leverage))
  const retained = isFullyCollateralised(spec, position, fundingIndex)
    ? maxOf(0n, maximumLoss(spec, position))
    : 0n
  return maxOf(0n, minOf(margin - retained, excessEquity(equity, required))) as Quote
}

// ---------------------------------------------------------------------- margin

const withMargin = (position: Position, moved: bigint): Verdict<AdjustmentResult, OutOfRange> => {
  const after = { ...position, foldedMargin: (position.foldedMargin + moved) as Quote }
  const field = outOfRangeField(after)
  return field === null
    ? accept({ position: after, moved: moved as Quote })
    : refuse({ code: 'OUT_OF_RANGE', field })
}

export function adjustMargin(
  spec: MarketSpec,
  position: Position,
  adjustment: MarginAdjustment,
  terms: AdjustTerms,
): Verdict<AdjustmentResult, MarginRefusal> {
  const { amount, minAmount, removeMode } = adjustment
  if (removeMode !== 'exact' && amount > 0n) return refuse({ code: 'REMOVE_MODE' })
  if (position.size === 0) return refuse({ code: 'NO_POSITION' })
  const sized =
    amount > 0n ? addition(spec, position, adjustment, terms) : removal(spec, position, adjustment, terms)
  if (!sized.ok) return sized
  const moves = abs(sized.value) as Quote
  if (moves < minAmount) return refuse({ code: 'BELOW_MINIMUM', minAmount, moves })
  return withMargin(position, sized.value)
}

function addition(
  spec: MarketSpec,
  position: Position,
  { amount }: MarginAdjustment,
  { fundingIndex, oracle }: AdjustTerms,
): Verdict<bigint, MarginRefusal> {
  if (!isLiquidatable(spec, position, fundingIndex, oracle)) return accept(amount)
  const { equity, notional } = exposureOf(spec, position, fundingIndex, oracle)
  const needed = -excessEquity(equity, initialRequirement(spec, notional)) as Quote
  return amount >= needed
    ? accept(amount)
    : refuse({ code: 'ADDITION_INSUFFICIENT', needed, received: amount })
}

function removal(
  spec: MarketSpec,
  position: Position,
  { amount, removeMode }: MarginAdjustment,
  terms: AdjustTerms,
): Verdict<bigint, MarginRefusal> {
  const removable = maxRemovable(spec, position, terms)
  const requested = -amount as Quote
  if (removeMode === 'exact' && requested > removable) {
    return refuse({ code: 'ABOVE_REMOVABLE', maxRemovable: removable, received: requested })
  }
  const moves = minOf(requested, removable)
  return moves === 0n ? refuse({ code: 'NOTHING_MOVES' }) : accept(-moves)
}

// ---------------------------------------------------------------------- leverage

/**
 * Moves margin until equity is notional / leverage, rounded up. Excess leaves rounded down. The result meets IMR, or
 * the adjustment is refused. Without a position only the leverage is set.
 */
export function adjustLeverage(
  spec: MarketSpec,
  position: Position,
  { leverage, maxMarginIn, minMarginOut }: LeverageAdjustment,
  { fundingIndex, oracle }: AdjustTerms,
): Verdict<AdjustmentResult, LeverageRefusal> {
  const { maxLeverage } = spec
  if (!Number.isSafeInteger(leverage) || leverage < 1 || leverage > maxLeverage) {
    return refuse({ code: 'LEVERAGE_OUT_OF_RANGE', maxLeverage, received: leverage })
  }
  const { equity, notional } = exposureOf(spec, position, fundingIndex, oracle)
  const spare = excessEquity(equity, leverageRequirement(notional, leverage))
  const needed = maxOf(0n, -spare) as Quote
  const available = maxOf(0n, minOf(marginOf(position, fundingIndex), spare)) as Quote
  if (needed > maxMarginIn) return refuse({ code: 'MARGIN_IN_ABOVE_MAXIMUM', maxMarginIn, needed })
  if (available < minMarginOut) return refuse({ code: 'MARGIN_OUT_BELOW_MINIMUM', minMarginOut, available })
  return withMargin({ ...position, leverage }, needed - available)
}

/**
 * Decides the next step for a position below the liquidation threshold: forced order, backstop, deleveraging, or none.
 * It never decides a step that the contract would refuse at the same state.
 */

import { priceBand } from '../market/band.ts'
import type { MarketSpec } from '../market/market.ts'
import { type Exposure, exposureOf, isLiquidatable } from '../positions/margin.ts'
import { bankruptcyPrice, type Position } from '../positions/position.ts'
import {
  type FundingIndex,
  type Millis,
  ONE,
  type Price,
  type Quote,
  type Seconds,
  type Steps,
} from '../units.ts'
import { isPastGrace } from './bank-pause.ts'
import { isDeleverageable } from './deleverage.ts'
import { type Counterparty, deleveragingLegs, type RankedLeg } from './deleveraging-legs.ts'
import { type Backstop, inherit, isInheritable } from './liquidation.ts'

/** Largest notional, in wei at the oracle price, that one forced order closes whole. */
export const WHOLE_NOTIONAL = 100_000n * ONE
/**
 * Number of pieces in which a larger position closes, relative to its size at the start of the liquidation.
 */
export const PIECES = 5
/** Consecutive batches that fill no step of a forced order, after which the backstop inherits. */
export const UNFILLED_BATCHES = 5

/** Progress of the position's liquidation. */
export interface LiquidationProgress {
  /** Absolute position size in steps at the start of the liquidation. */
  readonly startSteps: Steps
  /** Steps of the forced order in the book; 0 if there is none. */
  readonly resting: Steps
  /** Consecutive batches in which a forced order took part and filled no step. */
  readonly unfilled: number
}

export const NOT_STARTED: LiquidationProgress = {
  startSteps: 0 as Steps,
  resting: 0 as Steps,
  unfilled: 0,
}

export interface LadderInput {
  /** Specification in force at `asOf`. */
  readonly spec: MarketSpec
  /** The matched position. */
  readonly position: Position
  readonly index: FundingIndex
  readonly oracle: Price
  readonly asOf: Millis
  /** End of the bank's last pause; 0 if there was none. */
  readonly pauseEndsAt: Seconds
  /** Null if the market has none; 'itself' if the account is the backstop. */
  readonly backstop: Backstop | 'itself' | null
  /** Market pool after everything matched or decided before is executed. */
  readonly pool: Quote
  /** Opposite positions in rank order. Called only if the position is to be deleveraged. */
  readonly counterparties: () => Iterable<Counterparty>
  readonly progress: LiquidationProgress
}

export type LadderStep =
  /** Nothing remains to liquidate; the forced order ends. */
  | { readonly kind: 'end'; readonly reason: 'closed' | 'healthy' }
  /** The owner may add margin until `until`; no forced order may match before. */
  | { readonly kind: 'grace' }
  /** The forced order stays in the book. */
  | { readonly kind: 'rest' }
  /** A forced order of these steps joins the next batch. */
  | { readonly kind: 'force'; readonly steps: Steps }
  /** The backstop inherits the position. */
  | { readonly kind: 'inherit' }
  /** The position closes against these counterparties, in list order. Further actions may follow. */
  | { readonly kind: 'deleverage'; readonly legs: readonly RankedLeg[] }
  /**
   * A deficit: no counterparty qualifies or can be paid, the backstop cannot inherit, and no price of the
   * band is solvent.
   */
  | { readonly kind: 'uncovered' }

/**
 * The next step; the first rule that applies decides. After a bank pause, a position with equity is left alone for the
 * grace period.
 */
export function nextStep(input: LadderInput): LadderStep {
  const { spec, position, index, oracle } = input
  if (position.size === 0) return { kind: 'end', reason: 'closed' }
  if (!isLiquidatable(spec, position, index, oracle)) return { kind: 'end', reason: 'healthy' }
  const exposure = exposureOf(spec, position, index, oracle)
  const { equity } = exposure
  if (!isPastGrace(input.pauseEndsAt, input.asOf, equity)) return { kind: 'grace' }
  // Without equity the backstop would inherit a loss, so deleveraging comes first.
  if (equity <= 0n) return deleverage(input) ?? inheritance(input) ?? byBook(input, exposure)
  // The book did not take the position in time.
  const late = isLate(input, exposure) ? (inheritance(input) ?? deleverage(input)) : null
  return late ?? byBook(input, exposure)
}

/** Whether the next step can be a deleveraging; `nextStep` reads `counterparties` only then. */
export function needsCounterparties(input: Omit<LadderInput, 'counterparties'>): boolean {
  const { spec, position, backstop, index, oracle } = input
  if (!isDeleverageable(spec, position, backstop, index, oracle)) return false
  const exposure = exposureOf(spec, position, index, oracle)
  return exposure.equity <= 0n || isLate(input, exposure)
}

/** Inheritance step; null if the contract refuses it, or the backstop cannot pay. */
function inheritance({ spec, position, backstop, index, oracle }: LadderInput): LadderStep | null {
  if (backstop === 'itself' || !isInheritable(spec, position, index, oracle)) return null
  return inherit(spec, position, backstop, index, oracle).ok ? { kind: 'inherit' } : null
}

/** Deleveraging step; null if the contract refuses it, or no counterparty qualifies. */
function deleverage(input: LadderInput): LadderStep | null {
  const { spec, position, backstop, index, oracle } = input
  if (!isDeleverageable(spec, position, backstop, index, oracle)) return null
  const legs = deleveragingLegs(input, input.counterparties())
  return legs.length > 0 ? { kind: 'deleverage', legs } : null
}

function byBook(input: LadderInput, exposure: Exposure): LadderStep {
  if (!isFillable(input)) return { kind: 'uncovered' }
  return input.progress.resting > 0 ? { kind: 'rest' } : { kind: 'force', steps: pieceOf(exposure, input) }
}

/**
 * Whether the book's time is over: ratio below two thirds of MMR, no fill in time, or no solvent price in the band.
 */
const isLate = (input: Omit<LadderInput, 'counterparties'>, { equity, notional }: Exposure): boolean =>
  3n * equity * ONE < 2n * input.spec.mmr * notional ||
  input.progress.unfilled >= UNFILLED_BATCHES ||
  !isFillable(input)

/** Whether the band contains a price at which a forced order leaves no bad debt. */
function isFillable({ spec, position, index, oracle }: Omit<LadderInput, 'counterparties'>): boolean {
  const { lo, hi } = priceBand(spec, oracle)
  const bankruptcy = bankruptcyPrice(spec, position, index)
  return position.size > 0 ? bankruptcy <= hi : bankruptcy >= lo
}

/**
 * Steps of a piece: all of a small position; of a larger position, a share of its starting size, rounded up,
 * at most the rest.
 */
function pieceOf({ notional }: Exposure, { position, progress }: LadderInput): Steps {
  const rest = Math.abs(position.size)
  if (notional <= WHOLE_NOTIONAL * ONE) return rest as Steps
  const start = Math.max(progress.startSteps, rest)
  return Math.min(rest, Math.ceil(start / PIECES)) as Steps
}

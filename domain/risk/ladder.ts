/**
 * Decides what happens next to a position below the liquidation threshold: a forced order, inheritance by the
 * backstop, deleveraging, or nothing. Never decides a step that the contract would refuse at the same state.
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

/** A position up to this notional in wei at the oracle price is closed by one forced order. */
export const WHOLE_NOTIONAL = 100_000n * ONE
/** A larger one is closed in pieces: this many from the size at which its liquidation started. */
export const PIECES = 5
/** Batches in a row that fill no step of a forced order, after which the backstop inherits. */
export const UNFILLED_BATCHES = 5

/** What the liquidation of the position has done so far. */
export interface LiquidationProgress {
  /** Steps of the position, without sign, when its liquidation started. */
  readonly startSteps: Steps
  /** Steps of its forced order that rest in the book; 0 if there is none. */
  readonly resting: Steps
  /** Batches in a row in which a forced order took part and filled no step. */
  readonly unfilled: number
}

export const NOT_STARTED: LiquidationProgress = {
  startSteps: 0 as Steps,
  resting: 0 as Steps,
  unfilled: 0,
}

export interface LadderInput {
  /** In force as of `asOf`. */
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
  /** What the market's pool holds once everything that was matched or decided before is executed. */
  readonly pool: Quote
  /** Opposite positions in the order of their ranks. Called only if the position is to be deleveraged. */
  readonly counterparties: () => Iterable<Counterparty>
  readonly progress: LiquidationProgress
}

export type LadderStep =
  /** Nothing is to be liquidated (any more): its forced order ends. */
  | { readonly kind: 'end'; readonly reason: 'closed' | 'healthy' }
  /** The owner has time to add margin until `until`; a forced order must not be matched before. */
  | { readonly kind: 'grace' }
  /** The forced order that rests stays in the book. */
  | { readonly kind: 'rest' }
  /** A forced order of these steps joins the next batch. */
  | { readonly kind: 'force'; readonly steps: Steps }
  /** The backstop inherits the position. */
  | { readonly kind: 'inherit' }
  /** The position closes against these counterparties, in this order. More may follow. */
  | { readonly kind: 'deleverage'; readonly legs: readonly RankedLeg[] }
  /** No counterparty qualifies or can be paid, the backstop cannot inherit and no price of the band is solvent: a deficit. */
  | { readonly kind: 'uncovered' }

/**
 * The next step. In this order: nothing for a position that is flat or at the threshold, nothing in the grace
 * after a pause while the account has equity, deleveraging without equity, the backstop for a position that
 * the book does not take in time, deleveraging if the backstop cannot, else a forced order. The backstop
 * takes a position without equity only if no counterparty qualifies.
 */
export function nextStep(input: LadderInput): LadderStep {
  const { spec, position, index, oracle } = input
  if (position.size === 0) return { kind: 'end', reason: 'closed' }
  if (!isLiquidatable(spec, position, index, oracle)) return { kind: 'end', reason: 'healthy' }
  const exposure = exposureOf(spec, position, index, oracle)
  const { equity } = exposure
  if (!isPastGrace(input.pauseEndsAt, input.asOf, equity)) return { kind: 'grace' }
  if (equity <= 0n) return deleverage(input) ?? inheritance(input) ?? byBook(input, exposure)
  const late = isLate(input, exposure) ? (inheritance(input) ?? deleverage(input)) : null
  return late ?? byBook(input, exposure)
}

/** Whether the next step can be a deleveraging: `nextStep` reads `counterparties` only then. */
export function needsCounterparties(input: Omit<LadderInput, 'counterparties'>): boolean {
  const { spec, position, backstop, index, oracle } = input
  if (!isDeleverageable(spec, position, backstop, index, oracle)) return false
  const exposure = exposureOf(spec, position, index, oracle)
  return exposure.equity <= 0n || isLate(input, exposure)
}

/** Null if the contract refuses it, or the backstop cannot pay. */
function inheritance({ spec, position, backstop, index, oracle }: LadderInput): LadderStep | null {
  if (backstop === 'itself' || !isInheritable(spec, position, index, oracle)) return null
  return inherit(spec, position, backstop, index, oracle).ok ? { kind: 'inherit' } : null
}

/** Null if the contract refuses it, or no counterparty qualifies. */
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

/** Whether the book had its chance: ratio below two thirds of MMR, no fill in time, or no solvent price in the band. */
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

/** All of a small position; of a larger one a share of its size at the start, rounded up, at most the rest. */
function pieceOf({ notional }: Exposure, { position, progress }: LadderInput): Steps {
  const rest = Math.abs(position.size)
  if (notional <= WHOLE_NOTIONAL * ONE) return rest as Steps
  const start = Math.max(progress.startSteps, rest)
  return Math.min(rest, Math.ceil(start / PIECES)) as Steps
}

/** Market journal row of one liquidation step, with the evidence of its decision. */
import type { RunningLiquidation } from '../risk/running-liquidation.ts'
import type { Wei } from './wei.ts'

/**
 * `widened`: a batch left the forced order unfilled. `failed`: the queued action was dropped or had no effect. `ended`:
 * healthy, closed, or the market no longer liquidates.
 */
export type LiquidationStep =
  | 'started'
  | 'forced'
  | 'widened'
  | 'inherit_queued'
  | 'deleverage_queued'
  | 'failed'
  | 'ended'

/**
 * `UNFILLED`: batches left the forced order unfilled. `BELOW_MAINTENANCE`: the margin ratio is too low for the book.
 * `MARKET_CLOSED`: the market no longer liquidates.
 */
export type LiquidationReason =
  | 'BELOW_THRESHOLD'
  | 'UNFILLED'
  | 'NO_EQUITY'
  | 'BELOW_MAINTENANCE'
  | 'HEALTHY'
  | 'CLOSED'
  | 'MARKET_CLOSED'

/** A counterparty of a deleveraging, in ranking order. */
export interface LegEvidence {
  readonly user_id: number
  readonly steps: number
  /** Result of `scoreOf` when the legs were chosen. */
  readonly score: Wei
}

/** Matched position, report and ratio behind a step's decision. */
export interface LiquidationEvidence {
  /** Time up to which funding is settled. */
  readonly as_of: number
  readonly oracle_price: Wei
  readonly oracle_at: number
  readonly funding_index: Wei
  /** Signed steps. */
  readonly size: number
  readonly entry_notional: Wei
  readonly margin: Wei
  /** Equity / notional at the oracle price, rounded down; null if the position is closed. */
  readonly margin_ratio: Wei | null
  /** A liquidation starts below this ratio and ends at it. */
  readonly threshold: Wei
  /** Legs of a deleveraging; empty for other steps. */
  readonly legs: readonly LegEvidence[]
}

export interface LiquidationChanged {
  readonly kind: 'liquidation_changed'
  /** Sequence of the liquidation's `started` row; unique in the market. */
  readonly number: number
  readonly user_id: number
  readonly step: LiquidationStep
  /**
   * Reason of the step: a code of `LiquidationReason`; for `failed`, why the action was dropped or had no effect.
   */
  readonly reason: LiquidationReason | string
  /** Id of the forced order that the step concerns; null if there is none. */
  readonly order_id: string | null
  /** Batches that left the order unfilled. Each batch widens its price protection. */
  readonly widenings: number
  /** Queue number of the single action that the step concerns; null if there is none. */
  readonly queue_no: number | null
  readonly at: number
  /** Null if the decision used no report. */
  readonly evidence: LiquidationEvidence | null
}

/** A liquidation step, and the liquidation's state that later steps are decided from. */
export interface LiquidationProgressed {
  readonly kind: 'liquidation_progressed'
  readonly running: RunningLiquidation
}

/** The row of a market's journal about a step of a liquidation, with the evidence on which it was decided. */
import type { RunningLiquidation } from '../risk/running-liquidation.ts'
import type { Wei } from './wei.ts'

/**
 * `started`: the position fell below the threshold. `forced`: a forced order was placed. `widened`: a batch left it without a fill.
 * `inherit_queued`, `deleverage_queued`: a single action was queued. `failed`: that action was dropped or had no effect. `ended`: the
 * position is healthy again, or closed, or the market no longer liquidates.
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
 * `BELOW_THRESHOLD`: the margin ratio is below the threshold. `UNFILLED`: batches left the forced order without a fill. `NO_EQUITY`: the
 * position is worth less than nothing. `BELOW_MAINTENANCE`: the ratio is too low for the book. `HEALTHY`, `CLOSED`: nothing is left to
 * liquidate. `MARKET_CLOSED`: the market no longer liquidates.
 */
export type LiquidationReason =
  | 'BELOW_THRESHOLD'
  | 'UNFILLED'
  | 'NO_EQUITY'
  | 'BELOW_MAINTENANCE'
  | 'HEALTHY'
  | 'CLOSED'
  | 'MARKET_CLOSED'

/** A counterparty of a deleveraging, in the order of the ranking. */
export interface LegEvidence {
  readonly user_id: number
  readonly steps: number
  /** `scoreOf` the counterparty when the legs were chosen. */
  readonly score: Wei
}

/** The matched position, the report and the ratio on which a step was decided. */
export interface LiquidationEvidence {
  /** The time at which funding was settled. */
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
  /** A liquidation starts below this ratio, and ends at it. */
  readonly threshold: Wei
  /** Of a deleveraging; else empty. */
  readonly legs: readonly LegEvidence[]
}

export interface LiquidationChanged {
  readonly kind: 'liquidation_changed'
  /** The sequence of the liquidation's first row, `started`; unique in the market. */
  readonly number: number
  readonly user_id: number
  readonly step: LiquidationStep
  /** Why the step was taken: a code of `LiquidationReason`, or of `failed` why the action was dropped or had no effect. */
  readonly reason: LiquidationReason | string
  /** The forced order that the step concerns; null if there is none. */
  readonly order_id: string | null
  /** Batches that left the order without a fill. Each widens its price protection. */
  readonly widenings: number
  /** The number in the market's queue of the single action that the step concerns; null if there is none. */
  readonly queue_no: number | null
  readonly at: number
  /** Null if the step was not decided on a report. */
  readonly evidence: LiquidationEvidence | null
}

/** The liquidation as the keeper continues it: the state that later steps are decided on. */
export interface LiquidationProgressed {
  readonly kind: 'liquidation_progressed'
  readonly running: RunningLiquidation
}

/** The tables of the schema `read` about liquidations and the risk of markets. Only the projector writes them. */
import type { JSONColumnType } from 'kysely'
import type { LiquidationEvidence, LiquidationStep } from '../domain/journal/liquidation-row.ts'
import type { Side } from '../domain/orders/order.ts'

/** Block and transaction of a chain event. */
export interface MinedColumns {
  tx_hash: string
  log_index: number
  block: number
  at: number
}

/** Liquidations and end of a market so far: sums over its mined journal rows. */
export interface ReadMarketRiskTable {
  market_id: number
  inheritances: number
  inherited_steps: number
  failed_inheritances: number
  deleveragings: number
  deleveraged_steps: number
  /** Wei of USDM: value of the closed steps at the bankruptcy prices. */
  deleveraged_value: bigint
  /** Wei credited to the counterparties of deleveragings. */
  payouts: bigint
  /** Number of reported deficits, their sum in wei (`deficit`), and payments to cover them (`covered`). */
  deficits: number
  deficit: bigint
  covered: bigint
}

/** A mined step of a liquidation, which reduced a position. It contains no account. */
export interface ReadLiquidationsTable extends MinedColumns {
  id: string
  market_id: number
  /**
   * `forced`: forced fills of a batch. `inherited`: taken over by the backstop. `deleveraged`: closed against
   * counterparties.
   */
  kind: 'forced' | 'inherited' | 'deleveraged'
  /** Side of the position. */
  side: Side
  steps: number
  /** Clearing price in ticks; for forced fills only. */
  price: number | null
  /** Wei of USDM at which the steps were closed; for deleveragings only. */
  value: bigint | null
  /**
   * Oracle price that decided an inheritance or a deleveraging, and its observation time. Null for a forced fill: its
   * batch has them.
   */
  oracle_price: bigint | null
  oracle_at: number | null
  /** Batch of a forced fill. */
  batch_id: number | null
  part: number | null
}

/** A liquidation step decided by the keeper, with its evidence, for the account concerned. */
export interface ReadLiquidationStepsTable {
  /** Market and sequence in its journal. The id sorts by time within a market. */
  id: string
  market_id: number
  number: number
  user_id: number
  step: LiquidationStep
  reason: string
  order_id: string | null
  widenings: number
  at: number
  /** Evidence without legs, which are separate rows. */
  evidence: JSONColumnType<Omit<LiquidationEvidence, 'legs'>> | null
}

/** A counterparty of a queued deleveraging. `place`: its place in the ranking. */
export interface ReadLiquidationLegsTable {
  step_id: string
  place: number
  market_id: number
  user_id: number
  steps: number
  score: bigint
  at: number
}

export interface RiskReadTables {
  'read.market_risk': ReadMarketRiskTable
  'read.liquidations': ReadLiquidationsTable
  'read.liquidation_steps': ReadLiquidationStepsTable
  'read.liquidation_legs': ReadLiquidationLegsTable
}

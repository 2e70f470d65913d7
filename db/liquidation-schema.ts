/** The table of running liquidations. */
import type { ColumnType, Generated } from 'kysely'
import type { LiquidationAction, LiquidationStage } from '../domain/risk/running-liquidation.ts'

/** One row per running liquidation; it is deleted when the liquidation ends. The journal keeps its steps. Written by: engine. */
export interface LiquidationsTable {
  market_id: number
  user_id: number
  /** The sequence of its `started` row. */
  number: ColumnType<number, number, never>
  stage: LiquidationStage
  /** Signed steps of the position when the liquidation started: pieces are shares of it. */
  start_size: ColumnType<number, number, never>
  /** The last forced order. */
  order_id: string | null
  /** Batches in sequence that left the forced order without a fill. */
  widenings: Generated<number>
  /** Steps of the forced order in the book at `seen_seq`. */
  resting: Generated<number>
  /** The last single action. */
  queue_no: number | null
  /** Single actions in sequence that failed. */
  attempts: Generated<number>
  /** Kind of the last step. */
  failed_kind: LiquidationAction | null
  /** No action of that kind before this time; 0: at once. */
  retry_at: Generated<number>
  /** The batches up to this sequence of the journal are counted in `widenings`. */
  seen_seq: number
  started_at: ColumnType<number, number, never>
}

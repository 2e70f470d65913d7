/** The state of a running liquidation, from its first step to its last. */
import type { Millis, Seq, Steps, UserId } from '../units.ts'

/**
 * `closing`: a forced order is in the book, or is settling. `inheriting`, `deleveraging`: a single action is in the queue. `waiting`: the
 * next step is decided at `retryAt`.
 */
export type LiquidationStage = 'closing' | 'inheriting' | 'deleveraging' | 'waiting'

export interface RunningLiquidation {
  readonly account: UserId
  /** The sequence of its `started` row in the journal. */
  readonly number: Seq
  readonly stage: LiquidationStage
  /** Of the position when the liquidation started, signed: pieces are shares of it. */
  readonly startSize: Steps
  /** The last forced order; null before the first. */
  readonly orderId: string | null
  /** Batches that left the forced order without a fill. */
  readonly widenings: number
  /** Steps of the forced order in the book at `seenSeq`. */
  readonly resting: Steps
  /** Of the last single action in the market's queue; null before the first. */
  readonly queueNo: number | null
  /** Single actions in sequence that failed. */
  readonly attempts: number
  /** No step before this time; 0: at once. */
  readonly retryAt: Millis
  /** The batches up to this sequence of the journal are counted in `widenings`. */
  readonly seenSeq: Seq
  readonly startedAt: Millis
}

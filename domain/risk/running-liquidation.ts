/** The state of a running liquidation, from its first step to its last. */
import type { SingleKind } from '../actions/action.ts'
import type { Millis, Seq, Steps, UserId } from '../units.ts'

/**
 * `closing`: a forced order is in the book, or is settling. `inheriting`, `deleveraging`: a single action is in the queue. `waiting`: the
 * next step is not decided yet.
 */
export type LiquidationStage = 'closing' | 'inheriting' | 'deleveraging' | 'waiting'

/** The single actions of a liquidation. */
export type LiquidationAction = Extract<SingleKind, 'inherit_position' | 'deleverage'>

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
  /** Kind of the last one of them; null if there is none. */
  readonly failedKind: LiquidationAction | null
  /** No action of that kind before this time; 0: at once. */
  readonly retryAt: Millis
  /** The batches up to this sequence of the journal are counted in `widenings`. */
  readonly seenSeq: Seq
  readonly startedAt: Millis
}

export const NO_FAILURE = { attempts: 0, failedKind: null, retryAt: 0 as Millis }

const RETRY_MS = 1_000
const RETRY_MOST_MS = 60_000

/** After its single action failed at this time. The pause grows, so that one that fails for a lasting reason does not fill the queue. */
export function afterFailure(running: RunningLiquidation, at: Millis): RunningLiquidation {
  const attempts = running.attempts + 1
  const retryAt = (at + Math.min(RETRY_MOST_MS, RETRY_MS * 2 ** (attempts - 1))) as Millis
  const failedKind = running.stage === 'inheriting' ? 'inherit_position' : 'deleverage'
  return { ...running, stage: 'waiting', attempts, failedKind, retryAt }
}

/** State of a running liquidation. */
import type { SingleKind } from '../actions/action.ts'
import type { Millis, Seq, Steps, UserId } from '../units.ts'

/**
 * `closing`: a forced order is in the book or settling. `inheriting`, `deleveraging`: a single action is queued.
 * `waiting`: the next step is not decided yet.
 */
export type LiquidationStage = 'closing' | 'inheriting' | 'deleveraging' | 'waiting'

/** Single actions of a liquidation. */
export type LiquidationAction = Extract<SingleKind, 'inherit_position' | 'deleverage'>

export interface RunningLiquidation {
  readonly account: UserId
  /** Sequence of its `started` row in the journal. */
  readonly number: Seq
  readonly stage: LiquidationStage
  /** Signed position size at the start of the liquidation; pieces are shares of this size. */
  readonly startSize: Steps
  /** Id of the last forced order; null before the first. */
  readonly orderId: string | null
  /** Number of batches that left the forced order unfilled. */
  readonly widenings: number
  /** Steps of the forced order in the book at `seenSeq`. */
  readonly resting: Steps
  /** Queue number of the last single action; null before the first. */
  readonly queueNo: number | null
  /** Number of consecutive failed single actions. */
  readonly attempts: number
  /** Kind of the last failed action; null if there is none. */
  readonly failedKind: LiquidationAction | null
  /** Earliest time of another action of that kind; 0: at once. */
  readonly retryAt: Millis
  /** Journal sequence up to which batches are counted in `widenings`. */
  readonly seenSeq: Seq
  readonly startedAt: Millis
}

export const NO_FAILURE = { attempts: 0, failedKind: null, retryAt: 0 as Millis }

const RETRY_MS = 1_000
const RETRY_MOST_MS = 60_000

/**
 * State after a single action failed at `at`. The retry pause grows, so that a lasting failure does not fill the queue.
 */
export function afterFailure(running: RunningLiquidation, at: Millis): RunningLiquidation {
  const attempts = running.attempts + 1
  const retryAt = (at + Math.min(RETRY_MOST_MS, RETRY_MS * 2 ** (attempts - 1))) as Millis
  const failedKind = running.stage === 'inheriting' ? 'inherit_position' : 'deleverage'
  return { ...running, stage: 'waiting', attempts, failedKind, retryAt }
}

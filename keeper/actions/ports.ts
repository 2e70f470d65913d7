/** The queue of a market's actions, as the jobs that decide on single actions use it. */
import type { Fence } from '../../db/fence.ts'
import type { SingleAction } from '../../domain/actions/action.ts'
import type { QueueRefusal } from '../../domain/actions/queue.ts'
import type { FundingState } from '../../domain/prices/funding-state.ts'
import type { UsedReport } from '../../domain/prices/report.ts'
import type { MarketId, Millis } from '../../domain/units.ts'
import type { Verdict } from '../../domain/verdict.ts'

/** The end of a market's queue, behind which the next action comes. */
export interface QueueEnd {
  /** The time of the next action. */
  readonly asOf: Millis
  readonly usedReport: UsedReport | null
  /** After the last queued action. */
  readonly funding: FundingState
}

export interface ActionQueue {
  /**
   * Queues the action that `build` makes for the end of the queue, under the lock of the market's shard. Returns its number in the queue;
   * null if `build` returns null, or if no action can be mined now. `headTime`: block time of the chain's head; null while no node responds.
   */
  enqueue(
    marketId: MarketId,
    fence: Fence,
    headTime: Millis | null,
    build: (end: QueueEnd) => SingleAction | null,
  ): Promise<Verdict<number | null, QueueRefusal>>
}

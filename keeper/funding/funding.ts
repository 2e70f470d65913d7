/**
 * Queues a market's funding updates. It runs beside the auctions, under their lease: it reads the chain, and no auction waits for it. All
 * that it decides on is in the database, so a new owner continues where the last one ended.
 */
import type { Fence } from '../../db/fence.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { planFunding, UPDATE_INTERVAL } from '../../domain/prices/funding-plan.ts'
import type { ReportRules } from '../../domain/prices/report.ts'
import type { Millis } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Logger } from '../../service/logger.ts'
import type { ActionQueue, QueueEnd } from '../actions/ports.ts'
import { BackgroundTask } from '../background-task.ts'
import type { Chain } from '../ports.ts'
import type { FundingStore } from './ports.ts'

export interface FundingPorts {
  readonly funding: FundingStore
  readonly actions: ActionQueue
  readonly chain: Pick<Chain, 'isBankPaused'>
  /** Block time of the chain's head; null while no node responds. */
  readonly headTime: () => Millis | null
  readonly clock: Clock
  readonly logger: Logger
  readonly killPoint: KillPointHook<'after-funding-decision' | 'after-funding-queueing'>
  /** Wakes the market's settlement. */
  readonly wakeSettlement: () => void
}

export interface Funding {
  /** Starts a check in the background if none runs and one is due. `rules`: of the contract for reports; null until they are fetched. */
  poll(fence: Fence, rules: ReportRules | null): void
  /** Resolves when the running check has ended. */
  settled(): Promise<void>
}

/** A rate of a session starts at most this long, and the age of the session report, after the session. */
const POLL_MS = 1_000
/** Before a paused bank is read again. */
const PAUSED_POLL_MS = 10_000

/** `interval`: time between two updates of a market. */
export function createFunding(
  ports: FundingPorts,
  spec: MarketSpec,
  interval: Millis = UPDATE_INTERVAL,
): Funding {
  const { logger } = ports
  const task = new BackgroundTask(ports, 'funding check failed; will retry', { market_id: spec.marketId })
  let pauseMs = POLL_MS

  async function check(fence: Fence, rules: ReportRules | null): Promise<void> {
    const snapshot = await ports.funding.snapshot(spec)
    const planAt = (end: QueueEnd) => planFunding(spec, snapshot, end, { fetched: rules, interval })
    if (planAt({ ...snapshot, asOf: snapshot.now }) === null) return
    if (await ports.chain.isBankPaused(spec.trader)) {
      pauseMs = PAUSED_POLL_MS
      logger.info({ market_id: spec.marketId }, 'funding update waits: the bank is paused')
      return
    }
    ports.killPoint('after-funding-decision')
    const verdict = await ports.actions.enqueue(spec.marketId, fence, ports.headTime(), planAt)
    const details = { market_id: spec.marketId }
    if (!verdict.ok)
      logger.warn({ ...details, refusal: verdict.refusal }, 'funding update not queued; will retry')
    else if (verdict.value !== null) {
      ports.killPoint('after-funding-queueing')
      ports.wakeSettlement()
      logger.info({ ...details, queue_no: verdict.value }, 'funding update queued')
    }
  }

  return {
    poll(fence, rules) {
      task.poll(pauseMs, () => {
        pauseMs = POLL_MS
        return check(fence, rules)
      })
    },
    settled: () => task.settled(),
  }
}

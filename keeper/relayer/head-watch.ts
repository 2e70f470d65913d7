/** Polls the chain's head: the fee to sign with, and whether the node responds. */

import type { Millis } from '../../domain/units.ts'
import { type Clock, elapsed } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { Chain, Fee, Head, Metrics } from '../ports.ts'
import { type FeePolicy, feeAt } from './fee.ts'

export interface HeadWatch {
  start(): Promise<void>
  stop(): void
  /** The fee of a transaction signed now. Throws until the first head is fetched. */
  fee(): Fee
  /** True if the node has responded within the last 5 s. */
  isResponding(): boolean
  /** Block time of the head; null while the node does not respond. */
  headTime(): Millis | null
}

export interface HeadWatchPorts {
  readonly chain: Chain
  readonly clock: Clock
  readonly metrics: Metrics
  readonly logger: Logger
  readonly policy: FeePolicy
}

const POLL_MS = 1000
const RESPONSIVE_MS = 5000

export function createHeadWatch(ports: HeadWatchPorts): HeadWatch {
  const { chain, clock, metrics, logger, policy } = ports
  let head: Head | null = null
  let seenAt = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  let isPolling = false

  const poll = async (): Promise<void> => {
    if (isPolling) return
    isPolling = true
    try {
      head = await chain.head()
      seenAt = clock.now()
      metrics.head(head.block, head.time)
    } catch (err) {
      logger.warn({ err }, 'fetching the chain head failed; will retry')
    } finally {
      isPolling = false
    }
  }

  const isResponding = (): boolean => elapsed(clock, seenAt) < RESPONSIVE_MS

  return {
    async start() {
      timer = setInterval(() => void poll(), POLL_MS)
      await poll()
    },
    stop: () => clearInterval(timer),
    fee() {
      if (head === null) throw new Error('no chain head fetched yet')
      return feeAt(head, policy)
    },
    isResponding,
    headTime: () => (head !== null && isResponding() ? head.time : null),
  }
}

/** Polls the chain's head and the relayers' balances: the fee to sign with, whether the node responds, low balances. */

import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { Chain, Fee, Head, Metrics } from '../ports.ts'
import { type FeePolicy, feeAt } from './fee.ts'
import type { RelayerLane } from './ports.ts'

export interface HeadWatch {
  start(): Promise<void>
  stop(): void
  /** The fee of a transaction signed now. Throws until the first head is fetched. */
  fee(): Fee
  /** True if the node has responded within the last 5 s. */
  isResponding(): boolean
}

export interface HeadWatchPorts {
  readonly chain: Chain
  readonly clock: Clock
  readonly metrics: Metrics
  readonly logger: Logger
  readonly policy: FeePolicy
  readonly lowBalance: bigint
  readonly lanes: () => readonly RelayerLane[]
}

const POLL_MS = 1000
const POLLS_PER_BALANCE_CHECK = 30
const RESPONSIVE_MS = 5000

export function createHeadWatch(ports: HeadWatchPorts): HeadWatch {
  const { chain, clock, metrics, logger, policy } = ports
  let head: Head | null = null
  let seenAt = Number.NEGATIVE_INFINITY
  let polls = 0
  let timer: NodeJS.Timeout | undefined
  let isPolling = false

  const balances = async (): Promise<void> => {
    for (const { name, relayer } of ports.lanes()) {
      const balance = await chain.balance(relayer)
      metrics.balance(name, balance)
      if (balance < ports.lowBalance)
        logger.error({ lane: name, relayer, balance: String(balance) }, 'relayer balance low')
    }
  }

  const poll = async (): Promise<void> => {
    if (isPolling) return
    isPolling = true
    try {
      head = await chain.head()
      seenAt = clock.now()
      metrics.head(head.block, head.time)
      if (polls++ % POLLS_PER_BALANCE_CHECK === 0) await balances()
    } catch (err) {
      logger.warn({ err }, 'fetching the chain head failed; will retry')
    } finally {
      isPolling = false
    }
  }

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
    isResponding: () => clock.now() - seenAt < RESPONSIVE_MS,
  }
}

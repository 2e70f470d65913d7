/** Keeps an eye on the chain's head: the fee to sign with, whether the node answers, and what the relayers have left. */

import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { Chain, Fee, Head, Metrics } from '../ports.ts'
import type { DeliveryPolicy } from './delivery.ts'
import type { RelayerLane } from './ports.ts'

export interface HeadWatch {
  start(): Promise<void>
  stop(): void
  /** The fee of a transaction signed now. Fails while the chain has not been seen at all. */
  fee(): Fee
  /** Whether the node has answered lately. */
  isSeen(): boolean
}

export interface HeadWatchPorts {
  readonly chain: Chain
  readonly clock: Clock
  readonly metrics: Metrics
  readonly logger: Logger
  readonly policy: DeliveryPolicy
  readonly lowBalance: bigint
  readonly lanes: () => readonly RelayerLane[]
}

const LOOK_MS = 1000
const BALANCES_EVERY = 30
const SEEN_MS = 5000

export function createHeadWatch(ports: HeadWatchPorts): HeadWatch {
  const { chain, clock, metrics, logger, policy } = ports
  let head: Head | null = null
  let seenAt = Number.NEGATIVE_INFINITY
  let looks = 0
  let timer: NodeJS.Timeout | undefined
  let isLooking = false

  const balances = async (): Promise<void> => {
    for (const { name, relayer } of ports.lanes()) {
      const balance = await chain.balance(relayer)
      metrics.balance(name, balance)
      if (balance < ports.lowBalance)
        logger.error({ lane: name, relayer, balance: String(balance) }, 'a relayer runs out of gas')
    }
  }

  const look = async (): Promise<void> => {
    if (isLooking) return
    isLooking = true
    try {
      head = await chain.head()
      seenAt = clock.now()
      metrics.head(head.block, head.time)
      if (looks++ % BALANCES_EVERY === 0) await balances()
    } catch (err) {
      logger.warn({ err }, 'the node does not answer')
    } finally {
      isLooking = false
    }
  }

  return {
    async start() {
      timer = setInterval(() => void look(), LOOK_MS)
      await look()
    },
    stop: () => clearInterval(timer),
    fee() {
      if (head === null) throw new Error('the chain has not been seen yet')
      return feeAt(head, policy)
    },
    isSeen: () => clock.now() - seenAt < SEEN_MS,
  }
}

/** Twice the base fee and a tip: room for the base fee to grow while a transaction waits. */
export function feeAt({ baseFee }: Head, { priorityFee, feeCap }: DeliveryPolicy): Fee {
  const wanted = 2n * baseFee + priorityFee
  return { maxFeePerGas: wanted < feeCap ? wanted : feeCap, maxPriorityFeePerGas: priorityFee }
}

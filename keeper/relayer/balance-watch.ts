/** Reads the relayers' balances on a timer of its own, so that a slow read delays neither the chain's head nor a settlement. */

import type { Address } from '../../domain/units.ts'
import { type Clock, elapsed } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { Chain, Metrics } from '../ports.ts'

export interface BalanceWatch {
  stop(): void
}

export interface BalanceWatchPorts {
  /** Bounds each read: a read that has no response within the timeout rejects. */
  readonly chain: Pick<Chain, 'balance'>
  readonly clock: Clock
  readonly metrics: Pick<Metrics, 'balance'>
  readonly logger: Logger
  /** Below this balance an error is logged, wei. */
  readonly lowBalance: bigint
  readonly lanes: () => readonly string[]
  /** The present key of a lane. */
  readonly relayerOf: (lane: string) => Promise<Address>
}

/** An operator sees an empty relayer within two intervals. */
const INTERVAL_MS = 5_000
/** Between two log lines about the same low balance. */
const REPORT_MS = 60_000

/** Time of the last log line by the lane whose balance is low. */
type LowLanes = Map<string, number>

export function watchBalances(ports: BalanceWatchPorts): BalanceWatch {
  const low: LowLanes = new Map()
  void readBalances(ports, low)
  const timer = setInterval(() => void readBalances(ports, low), INTERVAL_MS)
  return { stop: () => clearInterval(timer) }
}

/** Reads all balances at once. A lane that cannot be read keeps its last balance and the time of that read. Never rejects. */
export async function readBalances(ports: BalanceWatchPorts, low: LowLanes = new Map()): Promise<void> {
  await Promise.all(ports.lanes().map((lane) => readBalance(ports, lane, low)))
}

async function readBalance(ports: BalanceWatchPorts, lane: string, low: LowLanes): Promise<void> {
  const { chain, clock, metrics, logger, lowBalance, relayerOf } = ports
  try {
    const relayer = await relayerOf(lane)
    const balance = await chain.balance(relayer)
    metrics.balance(lane, balance, clock.now())
    const facts = { lane, relayer, balance: String(balance) }
    if (balance >= lowBalance) {
      if (low.delete(lane)) logger.info(facts, 'relayer balance restored')
    } else if (elapsed(clock, low.get(lane) ?? Number.NEGATIVE_INFINITY) >= REPORT_MS) {
      low.set(lane, clock.now())
      logger.error({ ...facts, expected: String(lowBalance) }, 'relayer balance low')
    }
  } catch (err) {
    logger.warn({ lane, err }, 'reading a relayer balance failed; will retry')
  }
}

/** Reads the relayers' balances on a timer of its own, so that a slow read delays neither the chain's head nor a settlement. */

import type { Address } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
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

const INTERVAL_MS = 30_000

export function watchBalances(ports: BalanceWatchPorts): BalanceWatch {
  void readBalances(ports)
  const timer = setInterval(() => void readBalances(ports), INTERVAL_MS)
  return { stop: () => clearInterval(timer) }
}

/** Reads all balances at once. A lane that cannot be read keeps its last balance and the time of that read. Never rejects. */
export async function readBalances(ports: BalanceWatchPorts): Promise<void> {
  await Promise.all(ports.lanes().map((lane) => readBalance(ports, lane)))
}

async function readBalance(
  { chain, clock, metrics, logger, lowBalance, relayerOf }: BalanceWatchPorts,
  lane: string,
): Promise<void> {
  try {
    const relayer = await relayerOf(lane)
    const balance = await chain.balance(relayer)
    metrics.balance(lane, balance, clock.now())
    if (balance < lowBalance) logger.error({ lane, relayer, balance: String(balance) }, 'relayer balance low')
  } catch (err) {
    logger.warn({ lane, err }, 'reading a relayer balance failed; will retry')
  }
}

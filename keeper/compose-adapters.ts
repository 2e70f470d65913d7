/** The adapters behind the ports of the keeper's jobs. */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Db } from '../db/client.ts'
import type { DatabaseClock } from '../db/database-clock.ts'
import { createLeases } from '../db/leases.ts'
import { killAt } from '../service/kill-point.ts'
import type { Logger } from '../service/logger.ts'
import type { Spans } from '../service/spans.ts'
import { createCalls } from './adapters/calls.ts'
import { createChain } from './adapters/chain.ts'
import { createLaneQueue } from './adapters/lane-queue.ts'
import type { WorkerStores } from './compose-stores.ts'
import type { Config } from './config.ts'
import { LaneJobs } from './leader/lane-jobs.ts'
import type { KeeperMetrics } from './metrics.ts'
import { watchBalances } from './relayer/balance-watch.ts'
import { createHeadWatch } from './relayer/head-watch.ts'
import type { Keyring } from './relayer/keyring.ts'
import { LaneWatch } from './relayer/lane-watch.ts'
import { TransactionSpans } from './relayer/transaction-spans.ts'

/** New each time a process starts; see `createLeases`. */
const ownerName = (): string => `${hostname()}-${process.pid}-${randomUUID()}`

export function adaptersOf(
  config: Config,
  logger: Logger,
  db: Db,
  metrics: KeeperMetrics,
  clock: DatabaseClock,
  keyring: Keyring,
  stores: WorkerStores,
  spans: Spans | null,
) {
  const { chainId, rpcUrl: url, rpcTimeoutMs: requestTimeoutMs, sendTimeoutMs } = config
  const chain = createChain({ url, chainId, requestTimeoutMs, sendTimeoutMs })
  const policy = config.delivery
  const watch = createHeadWatch({ chain, clock, metrics, logger, policy })
  const { lowBalance } = config
  const { lanes } = keyring
  const relayerOf = async (lane: string) => (await keyring.present(lane)).lane.relayer
  const balances = () => watchBalances({ chain, clock, metrics, logger, lowBalance, lanes, relayerOf })
  const laneQueue = createLaneQueue(config, logger)
  const laneJobs = new LaneJobs({ queue: laneQueue, clock })
  laneQueue.serve(laneJobs)
  return {
    chain,
    policy,
    clock,
    metrics,
    logger,
    watch,
    balances,
    fee: () => watch.fee(),
    headTime: () => watch.headTime(),
    calls: createCalls(config.gas),
    killPoint: killAt(config.killAt),
    leases: createLeases(db, ownerName(), config.leaseMs),
    laneQueue,
    laneJobs,
    laneWatch: new LaneWatch({ clock, stallMs: config.laneStallMs }),
    stores,
    transactionSpans: spans && new TransactionSpans(spans),
    relayers: stores.relayers,
    voids: stores.voids,
    requeues: stores.requeues,
    leaseMs: config.leaseMs,
    maxInFlight: config.maxInFlight,
    confirmations: config.confirmations,
  }
}

export type Adapters = ReturnType<typeof adaptersOf>

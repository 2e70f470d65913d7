/** Wires the keeper: gives every job the adapters behind its ports. */
import { sql } from 'kysely'
import { ADJUSTMENTS_CHANNEL } from '../db/adjustments.ts'
import { checkExchange } from '../db/bound-exchange.ts'
import { createDb, createPool, type Db, LOOKUP_SETTINGS } from '../db/client.ts'
import { createDatabaseClock, MAX_SKEW_MS } from '../db/database-clock.ts'
import { FAUCET_CHANNEL } from '../db/faucet-requests.ts'
import { BATCH_NOTICE, JOURNAL_CHANNEL } from '../db/journal.ts'
import { loadMarkets } from '../db/markets.ts'
import { checkSchema } from '../db/migrator.ts'
import { createNotifications, type Notifications } from '../db/notifications.ts'
import { RELAY_CHANNEL } from '../db/relay-operations.ts'
import { ADJUSTMENT_LANE, chosenKey, RELAY_LANE } from '../db/relayers.ts'
import { marketShard } from '../domain/journal/journal-row.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import type { Address, MarketId } from '../domain/units.ts'
import { systemClock } from '../service/clock.ts'
import { type Check, createReadiness, serveHealth } from '../service/health.ts'
import { checkKeystores } from '../service/keys/key-settings.ts'
import type { Logger } from '../service/logger.ts'
import { startSpans } from '../service/trace-settings.ts'
import { createSigner, readChainId } from './adapters/chain.ts'
import { createQueuePage } from './adapters/queue-page.ts'
import { createExpiry } from './adjustments/expiry.ts'
import { watchBackups } from './backups.ts'
import { type Adapters, adaptersOf } from './compose-adapters.ts'
import { connectLinks, type EngineLinks, runInforming } from './compose-engine.ts'
import { createPriceJob } from './compose-prices.ts'
import { createStores } from './compose-stores.ts'
import type { Config } from './config.ts'
import { createEndingStore } from './ending/store.ts'
import type { ConnectEngine } from './engine/link/connection.ts'
import { createFigureStore } from './figures/store.ts'
import { createReportInformer } from './inform/reports.ts'
import { createRulesInformer } from './inform/rules.ts'
import { keyedJob } from './leader/keyed-job.ts'
import {
  adjustmentJob,
  endingJob,
  expiryJob,
  faucetJob,
  heartbeatJob,
  type Intervals,
  readersJob,
  relayJob,
  settlementJob,
} from './leader/leader-jobs.ts'
import { type LeaderJob, type LeaderLoop, runLeaderLoop } from './leader/leader-loop.ts'
import { type ListedMarkets, runListedMarkets } from './leader/listed-markets.ts'
import { createMetrics } from './metrics.ts'
import type { Signer } from './ports.ts'
import { deleteOldInputs } from './proofs/proofs.ts'
import { createProofStore } from './proofs/store.ts'
import { createRanks } from './ranks/ranks.ts'
import { createRankStore } from './ranks/store.ts'
import { startChainCheck } from './relayer/chain-check.ts'
import type { DeliveryPorts } from './relayer/delivery.ts'
import { createKeyring, type Keyring, type Relayer } from './relayer/keyring.ts'
import { createRelayExpiry } from './relays/expiry.ts'

export interface Keeper {
  /** Rejects if the node is on another chain. */
  readonly failed: Promise<never>
  /** Stops matching, waits for the receipts of what is in flight, and releases every lease. */
  stop(): Promise<void>
}

const IDLE_IN_TRANSACTION_MS = 1_000
/** Bound of the wait for an answer of the database, which may be behind a partition of the network. */
const QUERY_TIMEOUT_MS = 60_000

/** The job of a relayer lane. Throws if the lane has no key. `make` gets the lane's present key, the ports of every job, and the signers of former keys. */
function laneJob(
  { adapters, keyring, config }: KeeperParts,
  name: string,
  make: (relayer: Relayer, ports: Adapters & Pick<DeliveryPorts, 'signer' | 'formerSigner'>) => LeaderJob,
): LeaderJob {
  keyring.require(name)
  const formerSigner = (relayer: Address): Signer | null => keyring.formerSigner(name, relayer)
  return keyedJob({ ...adapters, keyring, keyPollMs: config.marketPollMs }, name, (relayer) =>
    make(relayer, { ...adapters, signer: relayer.signer, formerSigner }),
  )
}

function addLane({ laneWatch, laneJobs }: Adapters, name: string, loop: LeaderLoop): void {
  laneWatch.add(name, loop.isLeader)
  laneJobs.add(name, loop)
}

const settlementLane = (marketId: MarketId): string => `m${marketId}`

const intervalsOf = ({ sweepMs, pollMs }: Config): Intervals => ({ sweepMs, pollMs })

interface KeeperParts {
  readonly config: Config
  readonly adapters: Adapters
  readonly links: EngineLinks
  readonly db: Db
  /** By the shard of their market. */
  readonly settlements: Map<string, LeaderLoop>
  readonly keyring: Keyring
  readonly notifications: Pick<Notifications, 'on'>
}

/**
 * Settling a batch takes as much processor time as clearing it. The delay lets fills reach traders first when one
 * machine runs everything; the chain's answer takes longer anyway.
 */
const SETTLEMENT_DELAY_MS = 60

const runMarket = (parts: KeeperParts, spec: MarketSpec): readonly LeaderLoop[] => [
  runReaders(parts, spec),
  runSettlement(parts, spec),
]

function runSettlement(parts: KeeperParts, spec: MarketSpec): LeaderLoop {
  const { config, adapters, settlements } = parts
  const { stores } = adapters
  const name = settlementLane(spec.marketId)
  const intervals = intervalsOf(config)
  const job = laneJob(parts, name, ({ lane }, ports) =>
    settlementJob({ ...ports, store: stores.settlement }, { spec, lane, intervals }, () => loop.wake()),
  )
  const loop: LeaderLoop = runLeaderLoop(adapters, `settle:${name}`, job)
  addLane(adapters, name, loop)
  settlements.set(marketShard(spec.marketId), loop)
  return loop
}

function runReaders({ adapters, db, links }: KeeperParts, spec: MarketSpec): LeaderLoop {
  const ranks = createRanks({ ...adapters, ranks: createRankStore(db) }, spec)
  const rules = createRulesInformer({ ...adapters, engine: links.worker.engine }, spec)
  const ports = { ...adapters, figures: createFigureStore(db) }
  return runLeaderLoop(adapters, `readers:m${spec.marketId}`, readersJob(ports, spec, ranks, rules))
}

function runFaucet(parts: KeeperParts): LeaderLoop[] {
  const { config, adapters, notifications } = parts
  if (!config.relayerKeys().has('faucet')) return []
  const more = {
    ...config.faucet,
    store: adapters.stores.faucet,
    token: config.collateralToken as Address,
  }
  const job = laneJob(parts, 'faucet', ({ lane }, ports) =>
    faucetJob({ ...ports, ...more }, lane, intervalsOf(config), () => loop.wake()),
  )
  const loop: LeaderLoop = runLeaderLoop(adapters, 'faucet', job)
  addLane(adapters, 'faucet', loop)
  notifications.on(FAUCET_CHANNEL, () => loop.wake())
  return [loop]
}

function runHeartbeats(parts: KeeperParts): LeaderLoop[] {
  const { config, adapters, db } = parts
  if (!config.relayerKeys().has('heartbeat')) return []
  const markets = () => loadMarkets(db)
  const job = laneJob(parts, 'heartbeat', ({ lane }, ports) =>
    heartbeatJob({ ...ports, markets }, lane, intervalsOf(config), () => loop.wake()),
  )
  const loop: LeaderLoop = runLeaderLoop(adapters, 'heartbeat', job)
  addLane(adapters, 'heartbeat', loop)
  return [loop]
}

function runAdjustments(parts: KeeperParts): LeaderLoop[] {
  const { config, adapters, db, notifications } = parts
  if (!config.relayerKeys().has(ADJUSTMENT_LANE)) return []
  const stores = { adjustments: adapters.stores.adjustments, markets: () => loadMarkets(db) }
  const job = laneJob(parts, ADJUSTMENT_LANE, ({ lane }, ports) =>
    adjustmentJob({ ...ports, ...stores }, lane, intervalsOf(config), () => loop.wake()),
  )
  const loop: LeaderLoop = runLeaderLoop(adapters, ADJUSTMENT_LANE, job)
  addLane(adapters, ADJUSTMENT_LANE, loop)
  notifications.on(ADJUSTMENTS_CHANNEL, () => loop.wake())
  return [loop]
}

/** In every keeper, also without the lanes' keys. */
const runExpiries = ({ adapters }: KeeperParts): LeaderLoop[] => {
  const { adjustments, relays } = adapters.stores
  const expireAdjustments = createExpiry({ ...adapters, adjustments })
  const expireRelays = createRelayExpiry({ ...adapters, store: relays })
  return [
    runLeaderLoop(adapters, 'adjust-expiry', expiryJob(expireAdjustments)),
    runLeaderLoop(adapters, 'relay-expiry', expiryJob(expireRelays)),
  ]
}

function runEndings(parts: KeeperParts): LeaderLoop[] {
  const { config, adapters, db } = parts
  if (!config.relayerKeys().has('ending')) return []
  const more = {
    store: createEndingStore(db),
    finalizations: adapters.stores.finalizations,
    wakeSettlement: (marketId: MarketId) => adapters.laneJobs.wake(settlementLane(marketId)),
  }
  const job = laneJob(parts, 'ending', ({ lane }, ports) =>
    endingJob({ ...ports, ...more }, lane, intervalsOf(config), () => loop.wake()),
  )
  const loop: LeaderLoop = runLeaderLoop(adapters, 'ending', job)
  addLane(adapters, 'ending', loop)
  return [loop]
}

function runRelays(parts: KeeperParts): LeaderLoop[] {
  const { config, adapters, notifications } = parts
  const { forwarder } = config
  if (forwarder === null || !config.relayerKeys().has(RELAY_LANE)) return []
  const store = adapters.stores.relays
  const job = laneJob(parts, RELAY_LANE, ({ lane }, ports) =>
    relayJob({ ...ports, store, forwarder }, lane, intervalsOf(config), () => loop.wake()),
  )
  const loop: LeaderLoop = runLeaderLoop(adapters, RELAY_LANE, job)
  addLane(adapters, RELAY_LANE, loop)
  notifications.on(RELAY_CHANNEL, () => loop.wake())
  return [loop]
}

/** One process publishes the prices of all markets. */
function runPrices({ config, adapters, db, links }: KeeperParts): LeaderLoop[] {
  if (config.prices === null) return []
  const { chainId, rpcUrl, rpcTimeoutMs } = config
  const { publisher } = links
  const informer = publisher && createReportInformer({ ...adapters, db, engine: publisher.engine })
  const ports = { ...adapters, db, chainId, rpcUrl, rpcTimeoutMs, informer }
  return [runLeaderLoop(adapters, 'prices', createPriceJob(ports, config.prices))]
}

const runProofs = ({ config, adapters, db }: KeeperParts): LeaderLoop =>
  runLeaderLoop(adapters, 'proofs', {
    step: (fence) => deleteOldInputs({ ...adapters, store: createProofStore(db) }, config.proofDays, fence),
  })

const checksOf = (db: Db, { watch, clock, laneWatch }: Adapters, markets: ListedMarkets): Check[] => [
  {
    name: 'database',
    check: async () => (await sql`select 1`.execute(db)).rows.length === 1 || 'no_response',
  },
  { name: 'chain', check: async () => watch.isResponding() || 'no_response' },
  { name: 'markets', check: async () => markets.areStarted() || 'market_not_started' },
  { name: 'lanes', check: async () => laneWatch.stalled().length === 0 || 'lane_stalled' },
  { name: 'clock', check: async () => Math.abs(clock.skewMs()) <= MAX_SKEW_MS || 'clock_skewed' },
]

const queuePageOf = async ({ queuePagePassword: password }: Config, { laneQueue: { queue } }: Adapters) =>
  password === null ? null : createQueuePage({ password, queue })

/** The engine queues batches in another process, which notifies of their rows. A lost notification is found by the sweep. */
function wakeAfterBatches({ notifications, settlements }: KeeperParts): void {
  notifications.on(JOURNAL_CHANNEL, (payload) => {
    const [shard = '', , what] = payload.split(':')
    if (what === BATCH_NOTICE) setTimeout(() => settlements.get(shard)?.wake(), SETTLEMENT_DELAY_MS).unref()
  })
}

/** `connect`: to the engine, the only writer of the exchange's state. */
export async function compose(config: Config, logger: Logger, connect: ConnectEngine): Promise<Keeper> {
  await checkKeystores([
    ...[...config.relayerKeys().values()].flat(),
    ...(config.prices?.keys.values() ?? []),
  ])
  const db = createDb(
    createPool({
      ...{ url: config.databaseUrl, connections: config.databaseConnections, name: 'keeper' },
      settings: LOOKUP_SETTINGS,
      // Its locks on a lease end before the lease does, so that a frozen keeper delays no takeover.
      idleInTransactionMs: IDLE_IN_TRANSACTION_MS,
      queryTimeoutMs: QUERY_TIMEOUT_MS,
    }),
  )
  await checkSchema(db)
  await checkExchange(db, config)
  const chainCheck = await startChainCheck({
    chainId: config.chainId,
    readChainId: () => readChainId(config.rpcUrl, config.rpcTimeoutMs),
    logger,
  })
  const metrics = createMetrics()
  const { relayerKeys, chainId } = config
  const chosen = (lane: string) => chosenKey(db, lane)
  const keyring = createKeyring({ relayerKeys, chainId, createSigner, chosen })
  const clock = createDatabaseClock({ db, system: systemClock, metrics, logger })
  await clock.start()
  const links = connectLinks(config, connect)
  const stores = createStores({ db, engine: links.worker.engine })
  const spans = await startSpans('keeper', config.traces, logger)
  const adapters = adaptersOf(config, logger, db, metrics, clock, keyring, stores, spans)
  await adapters.watch.start()
  const notifications = createNotifications(config.databaseUrl, 'keeper')
  const settlements = new Map<string, LeaderLoop>()
  const parts = { config, adapters, links, db, settlements, keyring, notifications }
  wakeAfterBatches(parts)
  const others = [
    ...runPrices(parts),
    ...runFaucet(parts),
    ...runHeartbeats(parts),
    ...runAdjustments(parts),
    ...runExpiries(parts),
    ...runEndings(parts),
    ...runRelays(parts),
    runProofs(parts),
    watchBackups(db, metrics, { clock, logger }),
  ]
  await notifications.start()
  const run = (spec: MarketSpec) => runMarket(parts, spec)
  const markets = await runListedMarkets({
    load: () => loadMarkets(db),
    run,
    logger,
    pollMs: config.marketPollMs,
  })
  const balances = adapters.balances()
  const stopInforming = runInforming(parts, links)
  const readiness = createReadiness(checksOf(db, adapters, markets), logger)
  metrics.observeJobs(() => adapters.laneQueue.countJobs())
  const page = await queuePageOf(config, adapters)
  const health = await serveHealth({
    ...config.internal,
    registry: metrics.registry,
    readiness,
    logger,
    page,
  })
  logger.info({ markets: markets.count(), port: health.port }, 'keeper started')
  return {
    failed: chainCheck.failed,
    async stop() {
      chainCheck.stop()
      await Promise.all([markets, ...others].map((one) => one.stop()))
      stopInforming()
      adapters.watch.stop()
      balances.stop()
      clock.stop()
      await links.worker.close()
      await links.publisher?.close()
      await adapters.laneQueue.close()
      await notifications.stop()
      await health.close()
      await db.destroy()
      await spans?.stop()
    },
  }
}

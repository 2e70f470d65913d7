/** Wires the keeper: gives every job the adapters behind its ports. */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { sql } from 'kysely'
import { ADJUSTMENTS_CHANNEL } from '../db/adjustments.ts'
import { createDb, createPool, type Db, LOOKUP_SETTINGS } from '../db/client.ts'
import { createDatabaseClock, type DatabaseClock, MAX_SKEW_MS } from '../db/database-clock.ts'
import { FAUCET_CHANNEL } from '../db/faucet-requests.ts'
import { BATCH_NOTICE, JOURNAL_CHANNEL } from '../db/journal.ts'
import { createLeases } from '../db/leases.ts'
import { loadMarkets } from '../db/markets.ts'
import { checkSchema } from '../db/migrator.ts'
import { createNotifications, type Notifications } from '../db/notifications.ts'
import { sampleMatched } from '../db/positions.ts'
import { RELAY_CHANNEL } from '../db/relay-operations.ts'
import { ADJUSTMENT_LANE, RELAY_LANE } from '../db/relayers.ts'
import { marketShard } from '../domain/journal/journal-row.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import { hashOrder } from '../domain/orders/order-hash.ts'
import { MOST_RANKED } from '../domain/risk/rank-lights.ts'
import type { Address, MarketId, Millis } from '../domain/units.ts'
import { systemClock } from '../service/clock.ts'
import { keccak } from '../service/crypto.ts'
import { type Check, createReadiness, serveHealth } from '../service/health.ts'
import { killAt } from '../service/kill-point.ts'
import type { Logger } from '../service/logger.ts'
import { createActionQueue } from './actions/store.ts'
import { createCalls } from './adapters/calls.ts'
import { createChain, createSigner } from './adapters/chain.ts'
import { createWakeUps } from './adapters/wake-ups.ts'
import { createExpiry } from './adjustments/expiry.ts'
import { createAuctionStore } from './auction/store.ts'
import { createPriceJob } from './compose-prices.ts'
import { createEngineStores, createTableStores, type WorkerStores } from './compose-stores.ts'
import type { Config } from './config.ts'
import { createEndingStore } from './ending/store.ts'
import type { ConnectEngine, EngineConnection } from './engine/link/connection.ts'
import { createFigureStore } from './figures/store.ts'
import { createFundingStore } from './funding/store.ts'
import { informHead } from './inform/head.ts'
import { createReportInformer } from './inform/reports.ts'
import { createRulesInformer } from './inform/rules.ts'
import {
  adjustmentJob,
  auctionJob,
  endingJob,
  expiryJob,
  faucetJob,
  heartbeatJob,
  type Intervals,
  readersJob,
  relayJob,
  settlementJob,
} from './leader/leader-jobs.ts'
import { type LeaderLoop, runLeaderLoop } from './leader/leader-loop.ts'
import { type ListedMarkets, runListedMarkets } from './leader/listed-markets.ts'
import { runMarketShares } from './leader/market-shares.ts'
import { createSharesStore } from './leader/shares-store.ts'
import type { LiquidationPorts } from './liquidation/liquidations.ts'
import { createLiquidationStore } from './liquidation/store.ts'
import { createMetrics, type KeeperMetrics } from './metrics.ts'
import type { Signer, WakeUps } from './ports.ts'
import { deleteOldInputs } from './proofs/proofs.ts'
import { createProofStore } from './proofs/store.ts'
import { createStoredRanks } from './ranks/ranks.ts'
import { createRankStore } from './ranks/store.ts'
import { watchBalances } from './relayer/balance-watch.ts'
import { createHeadWatch } from './relayer/head-watch.ts'
import type { RelayerLane } from './relayer/ports.ts'
import { runReleases } from './relayer/release.ts'
import { createRelayExpiry } from './relays/expiry.ts'
import { Reachability } from './switches/reachability.ts'
import { createSwitchStore } from './switches/store.ts'
import { fireSwitches } from './switches/switches.ts'

export interface Keeper {
  /** Stops matching, waits for the receipts of what is in flight, and releases every lease. */
  stop(): Promise<void>
}

/** Bound of the wait for an answer of the database, which may be behind a partition of the network. */
const QUERY_TIMEOUT_MS = 60_000

/** New each time a process starts; see `createLeases`. */
const ownerName = (): string => `${hostname()}-${process.pid}-${randomUUID()}`

/** Bound of the time between a market's release and its next owner's first turn. */
const SHARES_PASS_MS = 500

function sharingOf(config: Config, logger: Logger, db: Db, metrics: KeeperMetrics, clock: DatabaseClock) {
  const owner = ownerName()
  const passMs = Math.min(SHARES_PASS_MS, config.leaseMs / 3)
  const shares = createSharesStore(db, config.leaseMs)
  return {
    leases: createLeases(db, owner, config.leaseMs),
    shares: runMarketShares({ shares, clock, logger, metrics, owner, passMs }),
  }
}

function adaptersOf(
  config: Config,
  logger: Logger,
  db: Db,
  metrics: KeeperMetrics,
  clock: DatabaseClock,
  lanes: () => readonly RelayerLane[],
  stores: WorkerStores,
) {
  const { chainId, rpcUrl: url, rpcTimeoutMs: requestTimeoutMs, sendTimeoutMs } = config
  const chain = createChain({ url, chainId, requestTimeoutMs, sendTimeoutMs })
  const policy = config.delivery
  const watch = createHeadWatch({ chain, clock, metrics, logger, policy })
  const { lowBalance } = config
  const balances = () => watchBalances({ chain, clock, metrics, logger, lowBalance, lanes })
  return {
    ...{ chain, policy, clock, metrics, logger, watch, balances },
    fee: () => watch.fee(),
    headTime: () => watch.headTime(),
    calls: createCalls(config.gas),
    killPoint: killAt(config.killAt),
    ...sharingOf(config, logger, db, metrics, clock),
    stores,
    relayers: stores.relayers,
    voids: stores.voids,
    requeues: stores.requeues,
    leaseMs: config.leaseMs,
    maxInFlight: config.maxInFlight,
    confirmations: config.confirmations,
  }
}

type Adapters = ReturnType<typeof adaptersOf>

interface Relayer {
  readonly signer: Signer
  readonly lane: RelayerLane
}

/** The relayers in use, by the name of their lane. */
function createKeyring({ relayerKeys, chainId }: Config) {
  const inUse = new Map<string, Relayer>()
  return {
    lanes: (): readonly RelayerLane[] => [...inUse.values()].map(({ lane }) => lane),
    open(name: string): Relayer {
      const key = relayerKeys().get(name)
      if (key === undefined)
        throw new Error(`no relayer key for lane ${name}: add it to RELAYER_KEYS_FILE or RELAYER_KEYS`)
      const signer = createSigner(chainId, key)
      const relayer = { signer, lane: { name, relayer: signer.address, chainId } }
      inUse.set(name, relayer)
      return relayer
    },
  }
}

type Keyring = ReturnType<typeof createKeyring>

const intervalsOf = ({ auctionIntervalMs, fundingIntervalMs, sweepMs, pollMs }: Config): Intervals => ({
  auctionMs: auctionIntervalMs,
  fundingMs: fundingIntervalMs,
  sweepMs,
  pollMs,
})

/** This process's connections to the engine. */
interface EngineLinks {
  readonly worker: EngineConnection
  /** Null if this process publishes no prices. */
  readonly publisher: EngineConnection | null
}

interface KeeperParts {
  readonly config: Config
  readonly adapters: Adapters
  /** Null: the jobs write the tables themselves. */
  readonly links: EngineLinks | null
  readonly db: Db
  readonly wakeUps: WakeUps
  /** By the shard of their market. */
  readonly settlements: Map<string, LeaderLoop>
  readonly keyring: Keyring
  readonly notifications: Pick<Notifications, 'on'>
}

const hashForced: LiquidationPorts['hashOrder'] = (order, spec) => hashOrder(order, spec, keccak)

/**
 * Signing, sending and mining a batch takes as much processor time as clearing it. On a machine that runs everything, it begins once the fills
 * have reached traders, who wait for them; the chain's answer takes longer anyway.
 */
const SETTLEMENT_DELAY_MS = 60

function runMarket(parts: KeeperParts, spec: MarketSpec): readonly LeaderLoop[] {
  const { adapters } = parts
  const { shares } = adapters
  const relayer = parts.keyring.open(`m${spec.marketId}`)
  const settlement = runSettlement(parts, spec, relayer)
  const { name } = relayer.lane
  const market =
    parts.links === null ? runAuction(parts, spec, name) : runReaders(parts, parts.links, spec, name)
  shares.add(spec.marketId, () => {
    market.wake()
    settlement.wake()
  })
  return [market, settlement]
}

function runSettlement(
  { config, adapters, wakeUps, settlements }: KeeperParts,
  spec: MarketSpec,
  { signer, lane }: Relayer,
): LeaderLoop {
  const { shares, stores } = adapters
  const loop: LeaderLoop = runLeaderLoop(adapters, `settle:${lane.name}`, {
    ...settlementJob(
      { ...adapters, signer, store: stores.settlement },
      { spec, lane, intervals: intervalsOf(config) },
      {
        onChange: () => loop.wake(),
        listen: () => wakeUps.listen(spec.marketId, () => loop.wake()),
      },
    ),
    isWanted: () => shares.isSettler(spec.marketId),
  })
  settlements.set(marketShard(spec.marketId), loop)
  return loop
}

/** The engine takes the market's turns; readers' ranks and figures are left, under the lease by which keepers share the markets. */
function runReaders(
  { adapters, db }: KeeperParts,
  { worker }: EngineLinks,
  spec: MarketSpec,
  lane: string,
): LeaderLoop {
  const { marketId } = spec
  const rankPorts = { ...adapters, store: createAuctionStore(db), ranks: createRankStore(db) }
  const ranks = createStoredRanks(rankPorts, spec, () => sampleMatched(db, marketId, MOST_RANKED))
  const rules = createRulesInformer({ ...adapters, engine: worker.engine }, spec)
  const ports = { ...adapters, figures: createFigureStore(db) }
  return runLeaderLoop(adapters, `auction:${lane}`, {
    ...readersJob(ports, spec, ranks, rules),
    isWanted: () => adapters.shares.isWanted(marketId),
  })
}

function runAuction(
  { config, adapters, db, wakeUps }: KeeperParts,
  spec: MarketSpec,
  lane: string,
): LeaderLoop {
  const wake = (): void => wakeUps.send(spec.marketId)
  const wakeAfterBatch = (): void => void setTimeout(wake, SETTLEMENT_DELAY_MS).unref()
  const { shares } = adapters
  const turnStarted = (lateMs: number): void => shares.turnStarted(lateMs)
  const stores = {
    store: createAuctionStore(db),
    funding: createFundingStore(db),
    actions: createActionQueue(db),
    liquidations: createLiquidationStore(db),
    ranks: createRankStore(db),
    figures: createFigureStore(db),
  }
  return runLeaderLoop(adapters, `auction:${lane}`, {
    ...auctionJob(
      {
        ...adapters,
        ...stores,
        turnStarted,
        hashOrder: hashForced,
        wake: wakeAfterBatch,
        wakeSettlement: wake,
      },
      spec,
      intervalsOf(config),
    ),
    isWanted: () => shares.isWanted(spec.marketId),
  })
}

function runFaucet({ config, adapters, keyring, notifications }: KeeperParts): LeaderLoop[] {
  if (!config.relayerKeys().has('faucet')) return []
  const { signer, lane } = keyring.open('faucet')
  const parts = {
    ...adapters,
    ...config.faucet,
    signer,
    store: adapters.stores.faucet,
    token: config.collateralToken as Address,
  }
  const loop: LeaderLoop = runLeaderLoop(
    adapters,
    'faucet',
    faucetJob(parts, lane, intervalsOf(config), () => loop.wake()),
  )
  notifications.on(FAUCET_CHANNEL, () => loop.wake())
  return [loop]
}

function runHeartbeats({ config, adapters, db, keyring }: KeeperParts): LeaderLoop[] {
  if (!config.relayerKeys().has('heartbeat')) return []
  const { signer, lane } = keyring.open('heartbeat')
  const parts = { ...adapters, signer, markets: () => loadMarkets(db) }
  const loop: LeaderLoop = runLeaderLoop(
    adapters,
    'heartbeat',
    heartbeatJob(parts, lane, intervalsOf(config), () => loop.wake()),
  )
  return [loop]
}

function runAdjustments({ config, adapters, db, keyring, notifications }: KeeperParts): LeaderLoop[] {
  if (!config.relayerKeys().has(ADJUSTMENT_LANE)) return []
  const { signer, lane } = keyring.open(ADJUSTMENT_LANE)
  const stores = { adjustments: adapters.stores.adjustments, markets: () => loadMarkets(db) }
  const loop: LeaderLoop = runLeaderLoop(
    adapters,
    ADJUSTMENT_LANE,
    adjustmentJob({ ...adapters, ...stores, signer }, lane, intervalsOf(config), () => loop.wake()),
  )
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

function runEndings({ config, adapters, db, wakeUps, keyring }: KeeperParts): LeaderLoop[] {
  if (!config.relayerKeys().has('ending')) return []
  const { signer, lane } = keyring.open('ending')
  const parts = {
    ...adapters,
    signer,
    store: createEndingStore(db),
    finalizations: adapters.stores.finalizations,
    wakeSettlement: (marketId: MarketId) => wakeUps.send(marketId),
  }
  const loop: LeaderLoop = runLeaderLoop(
    adapters,
    'ending',
    endingJob(parts, lane, intervalsOf(config), () => loop.wake()),
  )
  return [loop]
}

function runRelays({ config, adapters, keyring, notifications }: KeeperParts): LeaderLoop[] {
  if (config.forwarder === null || !config.relayerKeys().has(RELAY_LANE)) return []
  const { signer, lane } = keyring.open(RELAY_LANE)
  const store = adapters.stores.relays
  const loop: LeaderLoop = runLeaderLoop(
    adapters,
    RELAY_LANE,
    relayJob({ ...adapters, signer, store, forwarder: config.forwarder }, lane, intervalsOf(config), () =>
      loop.wake(),
    ),
  )
  notifications.on(RELAY_CHANNEL, () => loop.wake())
  return [loop]
}

/** One process publishes the prices of all markets. */
function runPrices({ config, adapters, db, links }: KeeperParts): LeaderLoop[] {
  if (config.prices === null) return []
  const { chainId, rpcUrl, rpcTimeoutMs } = config
  const publisher = links?.publisher ?? null
  const informer = publisher && createReportInformer({ ...adapters, db, engine: publisher.engine })
  const ports = { ...adapters, db, chainId, rpcUrl, rpcTimeoutMs, informer }
  return [runLeaderLoop(adapters, 'prices', createPriceJob(ports, config.prices))]
}

function runSwitches(adapters: Adapters, db: Db, reachability: Reachability): LeaderLoop {
  const ports = { ...adapters, switches: createSwitchStore(db), reachability }
  return runLeaderLoop(adapters, 'switches', { step: (fence) => fireSwitches(ports, fence) })
}

const runProofs = ({ config, adapters, db }: KeeperParts): LeaderLoop =>
  runLeaderLoop(adapters, 'proofs', {
    step: (fence) => deleteOldInputs({ ...adapters, store: createProofStore(db) }, config.proofDays, fence),
  })

const checksOf = (db: Db, { watch, clock }: Adapters, markets: ListedMarkets): Check[] => [
  {
    name: 'database',
    check: async () => (await sql`select 1`.execute(db)).rows.length === 1 || 'no_response',
  },
  { name: 'chain', check: async () => watch.isResponding() || 'no_response' },
  { name: 'markets', check: async () => markets.areStarted() || 'market_not_started' },
  { name: 'clock', check: async () => Math.abs(clock.skewMs()) <= MAX_SKEW_MS || 'clock_skewed' },
]

/** The engine queues batches in another process, which notifies of their rows. A lost notification is found by the sweep. */
function wakeAfterBatches({ notifications, settlements }: KeeperParts): void {
  notifications.on(JOURNAL_CHANNEL, (payload) => {
    const [shard = '', , what] = payload.split(':')
    if (what === BATCH_NOTICE) setTimeout(() => settlements.get(shard)?.wake(), SETTLEMENT_DELAY_MS).unref()
  })
}

function connectLinks(config: Config, connect: ConnectEngine | null): EngineLinks | null {
  if (connect === null) return null
  return { worker: connect('worker'), publisher: config.prices === null ? null : connect('publisher') }
}

/** Sends the engine what no row states, and what it may forget. Returns what stops it. */
function runInforming(adapters: Adapters, { worker: { engine } }: EngineLinks, keyring: Keyring): () => void {
  const stopHead = informHead({ ...adapters, engine })
  const stopReleases = runReleases({ ...adapters, engine, lanes: keyring.lanes })
  return () => {
    stopHead()
    stopReleases()
  }
}

/** `connect`: with an engine, which then is the only writer of the exchange's state; null: the jobs write the tables themselves. */
export async function compose(
  config: Config,
  logger: Logger,
  connect: ConnectEngine | null = null,
): Promise<Keeper> {
  const db = createDb(
    createPool({
      ...{ url: config.databaseUrl, connections: config.databaseConnections, name: 'keeper' },
      settings: LOOKUP_SETTINGS,
      queryTimeoutMs: QUERY_TIMEOUT_MS,
    }),
  )
  await checkSchema(db)
  const metrics = createMetrics()
  const wakeUps = createWakeUps(config, logger)
  const keyring = createKeyring(config)
  const reachability = new Reachability()
  const onReading = (now: Millis): void => reachability.reached(now)
  const clock = createDatabaseClock({ db, system: systemClock, metrics, logger, onReading })
  await clock.start()
  const links = connectLinks(config, connect)
  const stores = links === null ? createTableStores(db, clock) : createEngineStores(db, links.worker.engine)
  const adapters = adaptersOf(config, logger, db, metrics, clock, keyring.lanes, stores)
  await adapters.watch.start()
  const notifications = createNotifications(config.databaseUrl, 'keeper')
  const settlements = new Map<string, LeaderLoop>()
  const parts = { config, adapters, links, db, wakeUps, settlements, keyring, notifications }
  if (links !== null) wakeAfterBatches(parts)
  const others = [
    ...runPrices(parts),
    ...runFaucet(parts),
    ...runHeartbeats(parts),
    ...runAdjustments(parts),
    ...runExpiries(parts),
    ...runEndings(parts),
    ...runRelays(parts),
    ...(links === null ? [runSwitches(adapters, db, reachability)] : []),
    runProofs(parts),
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
  const stopInforming = links === null ? () => {} : runInforming(adapters, links, keyring)
  const readiness = createReadiness(checksOf(db, adapters, markets), logger)
  const health = await serveHealth({ ...config.internal, registry: metrics.registry, readiness, logger })
  logger.info({ markets: markets.count(), port: health.port }, 'keeper started')
  return {
    async stop() {
      await adapters.shares.stop()
      await Promise.all([markets, ...others].map((one) => one.stop()))
      stopInforming()
      adapters.watch.stop()
      balances.stop()
      clock.stop()
      await links?.worker.close()
      await links?.publisher?.close()
      await wakeUps.close()
      await notifications.stop()
      await health.close()
      await db.destroy()
    },
  }
}

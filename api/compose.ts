/** Wires the API: the only place where ports get their adapters. */

import type pg from 'pg'
import type { Logger } from 'pino'
import { bindExchange } from '../db/bound-exchange.ts'
import { createDb, createPool, type Db } from '../db/client.ts'
import { createDatabaseClock } from '../db/database-clock.ts'
import { checkSchema } from '../db/migrator.ts'
import { createNotifications } from '../db/notifications.ts'
import { type CalendarCache, createCalendarCache } from '../db/trading-calendars.ts'
import type { Address } from '../domain/units.ts'
import type { Engine } from '../keeper/engine/link/engine.ts'
import { type Clock, systemClock } from '../service/clock.ts'
import { type Check, createReadiness, serveHealth } from '../service/health.ts'
import { type KillPointHook, killAt } from '../service/kill-point.ts'
import type { Spans } from '../service/spans.ts'
import { startSpans } from '../service/trace-settings.ts'
import { createContractWallets } from './adapters/contract-wallets.ts'
import { createLimitStore, type LimitStore } from './adapters/limit-store.ts'
import { createAdjustments } from './adjustments/adjustments.ts'
import { createAttemptEnds } from './adjustments/attempt-ends.ts'
import { buildApp } from './app.ts'
import { ArrivalTimes } from './arrival-times.ts'
import { type Authenticate, createAuthenticator } from './auth/authenticator.ts'
import { createBearer } from './auth/bearer.ts'
import { createChallenges } from './auth/challenges.ts'
import { createFailedCredentials } from './auth/failed-credentials.ts'
import { createKeyCreation } from './auth/key-creation.ts'
import { createKeyUses } from './auth/key-uses.ts'
import { createLogIn } from './auth/log-in.ts'
import { createCancelSwitch } from './cancel-switch/cancel-switch.ts'
import { createConnectionSwitches } from './cancel-switch/connection-switches.ts'
import { type ConnectionSwitchStore, createEngineSwitches } from './cancel-switch/switch-store.ts'
import { createCommandPipeline } from './commands/pipeline.ts'
import { createShardEpochs } from './commands/shard-epochs.ts'
import { createTableProgress } from './commands/table-progress.ts'
import { type Config, DRAIN_WAIT_MS } from './config.ts'
import { createEngineCalls, type EngineCalls } from './engine-reply.ts'
import { createFaucet } from './faucet/faucet.ts'
import type { App } from './http/types.ts'
import { createConnections } from './live/connections.ts'
import { createFeed } from './live/feed.ts'
import { createMarginNonces } from './margin-nonces/margin-nonces.ts'
import { createMarketDirectory, type MarketDirectory } from './markets/market-directory.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { createOrderCommands, type OrderCommands } from './order-entry/order-commands.ts'
import type { Notifications } from './ports.ts'
import { type Completeness, createCompleteness } from './read-after/completeness.ts'
import { createReadAfter } from './read-after/read-after.ts'
import { createEngineRelays } from './relays/engine-relay.ts'
import { createRelays } from './relays/relays.ts'
import { createSessionKeys } from './session-keys/session-keys.ts'
import { createSignaturePool } from './signatures/pool.ts'
import { createAdmissionInputs } from './sizing/admission-inputs.ts'
import { createSizing } from './sizing/sizing.ts'
import { createStoredOutcomes } from './stored-outcome.ts'

export interface Api {
  readonly app: App
  readonly internalPort: number
  /** From now on it is not ready, and each response ends its connection, so that proxies send later requests elsewhere. It still serves. */
  announceStop(): void
  /** Rejects new commands, answers accepted commands, then closes all connections. */
  stop(): Promise<void>
}

const READ_SETTINGS = { statement_timeout: '10000' }

/** Refuses a database with another schema or of another exchange. */
async function openDatabase({
  databaseUrl: url,
  databaseConnections: connections,
  chainId,
  contracts,
}: Config) {
  const pool = createPool({ url, connections, name: 'clearbatch api', settings: READ_SETTINGS })
  const db = createDb(pool)
  await checkSchema(db)
  await bindExchange(db, { chainId, bank: contracts.marginBank })
  return { pool, db }
}

interface AuthInput {
  readonly config: Config
  readonly engine: EngineCalls
  readonly db: Db
  readonly clock: Clock
  readonly notifications: Notifications
  readonly limits: LimitStore
  readonly logger: Logger
}

function composeAuth({ config, engine, db, clock, notifications, limits, logger }: AuthInput) {
  const { failures: most, windowSeconds } = config.limits
  const windowMs = windowSeconds * 1000
  const failures = createFailedCredentials(
    { clock, count: limits.count },
    { most: most * windowSeconds, windowMs },
  )
  const bearer = config.bearer && createBearer(createLogIn(db, engine), clock, config.bearer)
  const keyUses = createKeyUses(db, logger)
  const authenticate = createAuthenticator({ db, clock, notifications, bearer, failures, keyUses })
  const { rpcUrl } = config.walletSigning
  const acceptsSignature = rpcUrl === null ? null : createContractWallets(rpcUrl, clock)
  const challenges = createChallenges({ db, clock, config })
  const keyCreation = createKeyCreation({ db, clock, challenges, notifications, acceptsSignature })
  return {
    ports: { authenticate, failures, challenges, keyCreation, notifications },
    stop: () => keyUses.stop(),
  }
}

/** Endpoints whose requests the keeper executes with a transaction. */
function composeTransactions({
  config,
  engine,
  db,
  clock,
  notifications,
  markets,
  killPoint,
}: TransactionParts) {
  const outcomes = createStoredOutcomes(notifications, clock)
  const awaitEnd = createAttemptEnds(db, clock, outcomes)
  const adjustments = createAdjustments({ db, markets, killPoint, awaitEnd, engine }, config)
  const faucet = config.faucet ? createFaucet({ db, clock, outcomes }, config) : null
  const { chainId, contracts } = config
  const forwarder = contracts.forwarder as Address
  const acceptRelay = createEngineRelays(db, engine)
  const relays = createRelays({ db, clock, chainId, forwarder, killPoint, acceptRelay })
  const sessionKeys = createSessionKeys({
    ...{ relays, clock, chainId, forwarder, accountManager: contracts.accountManager as Address },
  })
  const marginNonces = createMarginNonces({ db, clock, outcomes, relays, waitMs: config.relayWaitMs })
  return { outcomes, routes: { adjustments, faucet, sessionKeys, marginNonces } }
}

interface TransactionParts {
  readonly config: Config
  readonly engine: EngineCalls
  readonly db: Db
  readonly clock: Clock
  readonly notifications: Notifications
  readonly markets: MarketDirectory
  readonly killPoint: KillPointHook
}

interface LiveParts extends Omit<AuthInput, 'limits' | 'engine'> {
  readonly switchStore: ConnectionSwitchStore
  readonly arrivals: ArrivalTimes
  readonly spans: Spans | null
  readonly commands: OrderCommands
  readonly authenticate: Authenticate
  readonly metrics: Metrics
  readonly markets: MarketDirectory
  readonly completeness: Completeness
  readonly calendars: CalendarCache
}

/** The live feed and its connections. */
function composeLive({ config, metrics, switchStore, ...parts }: LiveParts) {
  const { clock, logger } = parts
  const switches = createConnectionSwitches(switchStore, clock, logger)
  const { random } = Math
  const { hub, follower } = createFeed({ ...parts, config, random })
  const ports = { ...parts, switches, hub, metrics: metrics.live, limits: config.live }
  const connections = createConnections({ ...ports, random }, config.live)
  return {
    connections,
    start: () => follower.start(),
    async stop() {
      await connections.stop()
      await switches.stop()
      await follower.stop()
    },
  }
}

interface CheckedParts extends Pick<TransactionParts, 'markets' | 'notifications'> {
  readonly pool: pg.Pool
  readonly isAccepting: () => boolean
}

const checksOf = ({ pool, markets, notifications, isAccepting }: CheckedParts): Check[] => [
  { name: 'accepting', check: async () => isAccepting() || 'shutting_down' },
  {
    name: 'database',
    check: async () => (await pool.query('select 1')).rowCount === 1 || 'no_response',
  },
  { name: 'markets', check: async () => (await markets.all()).length > 0 || 'no_market_listed' },
  { name: 'notifications', check: async () => notifications.isListening() || 'not_listening' },
]

/** `port`: the engine, which decides and stores every change of the exchange. */
export async function compose(config: Config, logger: Logger, port: Engine): Promise<Api> {
  const { pool, db } = await openDatabase(config)
  const metrics = createMetrics()
  const clock = createDatabaseClock({ db, system: systemClock, metrics, logger })
  await clock.start()
  const notifications = createNotifications(config.databaseUrl, 'api')
  const limits = createLimitStore(config, clock, logger)

  const arrivals = new ArrivalTimes()
  const spans = await startSpans('api', config.traces, logger)
  const engine = createEngineCalls(port, logger, config, arrivals, spans)
  const auth = composeAuth({ config, engine, db, clock, notifications, limits, logger })
  const markets = createMarketDirectory(db, clock)
  const calendars = createCalendarCache(db, clock)
  const completeness = createCompleteness(db, clock)
  const epochs = createShardEpochs(db, clock)
  const tables = createTableProgress(db)
  const readAfter = createReadAfter(
    { db, clock, notifications, completeness, tables, onStale: epochs.expire },
    config,
  )
  const killPoint = killAt(config.killAt)
  const signatures = createSignaturePool(config.signatureThreads)
  const commandPorts = {
    db,
    clock,
    epochs,
    killPoint,
    markets,
    metrics,
    logger,
    ...signatures,
    engine,
    requests: arrivals,
    tables,
  }
  const pipeline = createCommandPipeline(commandPorts, config)
  const commands = createOrderCommands(pipeline)
  const { authenticate } = auth.ports
  const switchStore = createEngineSwitches(engine, clock)
  const shared = { config, db, clock, arrivals, spans, notifications, logger, metrics, commands, markets }
  const live = composeLive({ ...shared, authenticate, completeness, calendars, switchStore })
  const sizing = createSizing({ db, clock, markets, admissionInputOf: createAdmissionInputs(engine) })
  const cancelSwitch = createCancelSwitch(db, clock, switchStore)
  const transactions = composeTransactions({ config, engine, db, clock, notifications, markets, killPoint })
  metrics.gauge('api_read_after_waiting', () => readAfter.waiting)

  let isStopping = false
  const checks = checksOf({ pool, markets, notifications, isAccepting: () => !isStopping })
  const readiness = createReadiness(checks, logger)
  const app = await buildApp({
    ...shared,
    requestCounts: limits,
    ...auth.ports,
    calendars,
    readAfter,
    connections: live.connections,
    sizing,
    cancelSwitch,
    ...transactions.routes,
    readiness,
    isStopping: () => isStopping,
  })
  await notifications.start()
  live.start()
  const internal = await serveHealth({ ...config.internal, registry: metrics.registry, readiness, logger })

  return {
    app,
    internalPort: internal.port,
    announceStop() {
      isStopping = true
    },
    async stop() {
      isStopping = true
      live.connections.announceStop()
      transactions.outcomes.endWithin(DRAIN_WAIT_MS)
      await pipeline.stop()
      readAfter.stop()
      await live.stop()
      await app.close()
      await notifications.stop()
      await auth.stop()
      limits.stop()
      await signatures.stop()
      await internal.close()
      clock.stop()
      arrivals.stop()
      await spans?.stop()
      await pool.end()
    },
  }
}

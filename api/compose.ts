/** Wires the api: the one place where ports meet their adapters. */
import { type Logger, pino } from 'pino'
import { createDb, createPool } from '../db/client.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import { createSharedLimits } from './adapters/limit-store.ts'
import { createNotifications } from './adapters/notifications.ts'
import { buildApp } from './app.ts'
import { createAuthenticator } from './auth/authenticator.ts'
import { createBearerVerifier } from './auth/bearer.ts'
import { createCancelSwitch } from './cancel-switch/cancel-switch.ts'
import { dryRunAdmission } from './commands/dry-run.ts'
import { createIntake } from './commands/pipeline.ts'
import type { Config } from './config.ts'
import { createFaucet } from './faucet/faucet.ts'
import type { Check } from './http/probes.ts'
import type { App } from './http/types.ts'
import { createMarketDirectory } from './markets/market-directory.ts'
import { createMetrics } from './metrics.ts'
import { type Clock, killAt, systemClock } from './ports.ts'
import { createReadAfter } from './read-after/read-after.ts'
import { createSignaturePool } from './signatures/pool.ts'
import { createSizing } from './sizing/sizing.ts'

export interface Api {
  readonly app: App
  readonly log: Logger
  /** Refuses new commands, answers those that were taken, then lets go of everything. */
  stop(): Promise<void>
}

/**
 * The intake's statements are planned once, perhaps while the tables are empty, and must read them by their keys when they are full: so
 * everything that reads a table whole is forbidden.
 */
const INTAKE_SETTINGS = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_material: 'off',
}
const READ_SETTINGS = { statement_timeout: '10000' }

const createLog = (level: string): Logger =>
  pino({
    name: 'api',
    level,
    redact: ['req.headers.authorization', 'req.headers.cookie', '*.signature'],
  })

function createPools({ databaseUrl: url, databaseConnections, commandTimeoutMs }: Config) {
  const connections = Math.max(2, Math.ceil(databaseConnections / 2))
  return {
    reads: createPool({ url, connections, name: 'clearbatch api', settings: READ_SETTINGS }),
    // For orders that are only tried: the intake's statements, without its locks.
    trials: createPool({
      ...{ url, connections: 2, name: 'clearbatch api trials', settings: READ_SETTINGS, pipeline: true },
    }),
    intake: createPool({
      url,
      connections,
      name: 'clearbatch api intake',
      // Shorter than the client's patience, so that a busy market is an answer and not a broken connection.
      settings: { ...INTAKE_SETTINGS, lock_timeout: String(Math.ceil(commandTimeoutMs * 0.6)) },
      queryTimeoutMs: commandTimeoutMs,
      pipeline: true,
    }),
  }
}

export async function compose(config: Config, overrides: { readonly clock?: Clock } = {}): Promise<Api> {
  const log = createLog(config.logLevel)
  const clock = overrides.clock ?? systemClock
  const pools = createPools(config)
  const db = createDb(pools.reads)
  const metrics = createMetrics()
  const notifications = createNotifications(config.databaseUrl)
  const limits = config.redisUrl === null ? null : createSharedLimits(config.redisUrl, clock, log)

  const verifyBearer = config.bearer === null ? null : createBearerVerifier(db, clock, config.bearer)
  const authenticate = createAuthenticator({ db, clock, notifications, verifyBearer })
  const markets = createMarketDirectory(db, clock)
  const readAfter = createReadAfter({ db, clock, notifications }, config)
  const reached = killAt(config.killAt)
  const signatures = createSignaturePool(config.signatureThreads)
  const intakePorts = { pool: pools.intake, trials: pools.trials, db, clock, reached, markets, metrics, log }
  const { recoverSigners } = signatures
  const intake = createIntake({ ...intakePorts, recoverSigners }, config)
  const looking = { trials: pools.trials, clock }
  const admissionInputOf = (spec: MarketSpec, userId: number) =>
    dryRunAdmission(looking, config, spec, userId)
  const sizing = createSizing({ db, markets, admissionInputOf })
  const cancelSwitch = createCancelSwitch(db, clock)
  const faucet = config.faucet ? createFaucet({ db, clock }, config.faucetWaitMs) : null
  metrics.watch('api_read_after_waiting', 'Reads that wait for their bookmark', () => readAfter.waiting)

  let isStopping = false
  const checks: Check[] = [
    { name: 'accepting', check: async () => (isStopping ? 'shutting down' : true) },
    {
      name: 'database',
      check: async () => (await pools.reads.query('select 1')).rowCount === 1 || 'no answer',
    },
    { name: 'markets', check: async () => (await markets.all()).length > 0 || 'no market is listed' },
    { name: 'notifications', check: async () => notifications.isListening() || 'not listening' },
  ]
  const app = await buildApp({
    ...{
      config,
      logger: log,
      clock,
      db,
      limitStore: limits?.store ?? null,
      metrics,
      authenticate,
      markets,
      readAfter,
      intake,
      sizing,
      cancelSwitch,
      faucet,
      checks,
    },
  })
  await notifications.start()

  return {
    app,
    log,
    async stop() {
      isStopping = true
      await intake.stop()
      readAfter.stop()
      await app.close()
      await notifications.stop()
      limits?.stop()
      await signatures.stop()
      await Promise.all([pools.intake.end(), pools.trials.end(), pools.reads.end()])
    },
  }
}

/** Wires the engine: database, recovered state, connections of clients, health and metrics. */

import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { bindExchange } from '../../db/bound-exchange.ts'
import { createDb, createPool, LOOKUP_SETTINGS } from '../../db/client.ts'
import { createDatabaseClock } from '../../db/database-clock.ts'
import { engineIdentity, isRestored, noteCaughtUp } from '../../db/engine-identity.ts'
import { readGroups } from '../../db/engine-journal.ts'
import { checkSchema } from '../../db/migrator.ts'
import { systemClock } from '../../service/clock.ts'
import { type Check, createReadiness, serveHealth } from '../../service/health.ts'
import type { Logger } from '../../service/logger.ts'
import { startSpans } from '../../service/trace-settings.ts'
import { Attempts } from './attempts.ts'
import { recoverState } from './checkpoints.ts'
import type { Config } from './config.ts'
import { startCore } from './core.ts'
import { createEnginePort } from './engine-port.ts'
import { storeGenesis } from './genesis.ts'
import { listen } from './link/listen.ts'
import { PROTOCOL } from './link/messages.ts'
import { RecentReplies } from './link/recent-replies.ts'
import { createMetrics } from './metrics.ts'
import { samplePauses } from './pauses.ts'
import type { EngineClock } from './ports.ts'

export interface RunningEngine {
  /** Rejects when this member of the engine has ended: its process exits, and a new one starts. */
  readonly failed: Promise<never>
  stop(): Promise<void>
}

/** Bound of the wait for an answer of the database, which may be behind a partition of the network. */
const QUERY_TIMEOUT_MS = 10_000
/** More commands than all clients together have open. */
const RECENT_REPLIES = 100_000

const database = (pool: pg.Pool): Check => ({
  name: 'database',
  check: async () => (await pool.query('select 1')).rowCount === 1 || 'no_response',
})

export async function compose(config: Config, logger: Logger): Promise<RunningEngine> {
  const pool = createPool({
    url: config.databaseUrl,
    connections: config.databaseConnections,
    name: 'engine',
    settings: LOOKUP_SETTINGS,
    queryTimeoutMs: QUERY_TIMEOUT_MS,
  })
  const db = createDb(pool)
  await checkSchema(db)
  await bindExchange(db, config)
  if ((await readGroups(pool, 0, 1)).length === 0) await storeGenesis(db, pool)
  const metrics = createMetrics()
  const databaseClock = createDatabaseClock({ db, system: systemClock, metrics, logger })
  await databaseClock.start()
  const clock: EngineClock = { now: databaseClock.now, monotonic: () => performance.now() }
  const identity = { protocol: PROTOCOL, chainId: config.chainId, ...(await engineIdentity(db)) }
  const recovered = await recoverState(pool, logger)
  const isAwaited = () => isRestored(db)
  // A restore happens while no process runs, so that later starts alone need to read it again.
  const restored = (await isAwaited()) ? { isAwaited, noteDone: () => noteCaughtUp(db) } : null
  const spans = await startSpans('engine', config.traces, logger)
  const attempts = new Attempts(clock.monotonic)
  const core = startCore({ config, logger, metrics, clock, pool, restored, spans, attempts }, recovered)
  const { member } = core
  const port = createEnginePort({ ...core, ...clock, submit: member.submit, attempts })
  core.onOwner(() => {
    if (core.isOwner()) port.owns()
  })
  const links = await listen(config, {
    ...port,
    identity,
    keys: config.keys,
    recent: new RecentReplies(RECENT_REPLIES),
    member: randomBytes(16).toString('hex'),
    monotonic: clock.monotonic,
    token: core.token,
    logger,
  })
  core.onOwner(links.announce)
  metrics.observe({
    waiting: member.waiting,
    isOwner: core.isOwner,
    stored: member.stored,
    lagMs: member.lagMs,
  })
  const stopSampling = samplePauses(clock, metrics.paused)
  const readiness = createReadiness([database(pool)], logger)
  const health = await serveHealth({ ...config.internal, registry: metrics.registry, readiness, logger })
  logger.info({ port: health.port, head: member.stored().head }, 'engine started')
  return {
    failed: core.failed,
    async stop() {
      await core.stop()
      await links.close()
      await health.close()
      databaseClock.stop()
      stopSampling()
      await db.destroy()
      await spans?.stop()
    },
  }
}

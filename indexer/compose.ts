/** Wires the indexer: gives the follower and the projections the adapters behind their ports. */
import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { bindExchange } from '../db/bound-exchange.ts'
import { createDb, createPool, type Db, LOOKUP_SETTINGS } from '../db/client.ts'
import { createDatabaseClock } from '../db/database-clock.ts'
import { BATCH_NOTICE, BOOKMARK_CHANNEL } from '../db/journal.ts'
import { createLeases } from '../db/leases.ts'
import { checkSchema } from '../db/migrator.ts'
import { TransactionClient } from '../db/transaction-client.ts'
import type { ConnectEngine } from '../keeper/engine/link/connection.ts'
import type { Engine } from '../keeper/engine/link/engine.ts'
import { type Clock, systemClock } from '../service/clock.ts'
import { type Check, type CheckFailure, createReadiness, serveHealth } from '../service/health.ts'
import { type KillPointHook, killAt } from '../service/kill-point.ts'
import type { Logger } from '../service/logger.ts'
import { startSpans } from '../service/trace-settings.ts'
import { createChain } from './adapters/chain.ts'
import { DatabaseSession } from './adapters/database-session.ts'
import { FollowerLease } from './adapters/follower-lease.ts'
import { type Heads, watchHeads } from './adapters/heads.ts'
import type { Config } from './config.ts'
import { OtherChainError } from './ingest/bind-chain.ts'
import { createEngineRecord } from './ingest/engine-record.ts'
import { Follower } from './ingest/follow.ts'
import { Loop } from './loop.ts'
import { createMetrics } from './metrics.ts'
import { PartSpans } from './part-spans.ts'
import type { Metrics } from './ports.ts'
import { MARKED_MS } from './project/fill.ts'
import { projectionLag } from './project/project-shards.ts'
import { Projector } from './project/projector.ts'

/** A follower that is stopped or partitioned is replaced after this time. */
const FOLLOWER_LEASE_MS = 2_000
/** Interval at which a standby process tries to become the follower. */
const STANDBY_MS = 500
/** Bound of the wait for an answer of the database, which may be behind a partition of the network. A statement on a market's largest block took 37 s. */
const QUERY_TIMEOUT_MS = 120_000
const RETRY_MS = 100
/** After an outage of the database, placements are refused until the follower has reached the chain's head. */
const RETRY_MAX_MS = 1_000

export interface Indexer {
  /** Rejects if the database belongs to another chain: no retry can repair that. */
  readonly failed: Promise<never>
  stop(): Promise<void>
}

export async function compose(config: Config, logger: Logger, connect: ConnectEngine): Promise<Indexer> {
  const link = connect('ingest')
  const { metrics, registry } = createMetrics()
  const killPoint = killAt(config.killAt)
  const name = 'clearbatch indexer'
  const { db, chunkDb, fillDb } = openDatabase(config, name)
  await checkSchema(db)
  await bindExchange(db, config)
  const clock = createDatabaseClock({ db, system: systemClock, metrics, logger })
  await clock.start()
  const failure = Promise.withResolvers<never>()
  failure.promise.catch(() => {})

  const options = { limit: config.chunk, pollMs: config.projectPollMs, killPoint, markedMs: MARKED_MS }
  const spans = await startSpans('indexer', config.traces, logger)
  const partSpans = spans && new PartSpans(spans)
  const projection = new Projector({ db: chunkDb, fillDb, clock, logger, metrics, partSpans }, options)
  const session = new DatabaseSession({
    url: config.databaseUrl,
    name: `${name} session`,
    channels: ['chain', 'journal', BOOKMARK_CHANNEL],
    onNotify(channel, payload) {
      const [shard = '', , what] = payload.split(':')
      if (channel === 'chain') follow.loop.wake()
      else projection.wake(shard, channel === BOOKMARK_CHANNEL || what === BATCH_NOTICE)
    },
    onConnect() {
      follow.loop.wake()
      projection.wake()
    },
    onError: (err) => logger.warn({ err }, 'database session lost'),
  })
  const follow = composeFollower(config, {
    db,
    clock,
    logger,
    metrics,
    killPoint,
    engine: link.engine,
    partSpans,
    fail: failure.reject,
  })

  session.start()
  follow.start()
  projection.start()
  const readiness = createReadiness(checksOf(config, db, clock), logger)
  const health = await serveHealth({ ...config.internal, registry, readiness, logger })
  logger.info({ port: health.port, chain_id: config.chainId }, 'indexer started')

  return {
    failed: failure.promise,
    async stop() {
      // Blocks first: what they append is projected before the end.
      await follow.stop()
      await link.close()
      await projection.stop()
      await session.stop()
      await health.close()
      clock.stop()
      await Promise.all([db, chunkDb, fillDb].map((each) => each.destroy()))
      await spans?.stop()
    },
  }
}

/** `chunkDb`: for the chunks of the projector, most of whose statements Postgres plans in more time than it runs them. `fillDb`: for what reads whole tables. */
function openDatabase({ databaseUrl: url, databaseConnections }: Config, name: string) {
  const connections = Math.max(2, Math.ceil(databaseConnections / 2))
  const lookups = { url, connections, settings: LOOKUP_SETTINGS, queryTimeoutMs: QUERY_TIMEOUT_MS }
  return {
    db: createDb(createPool({ ...lookups, name })),
    chunkDb: createDb(createPool({ ...lookups, name: `${name} chunks`, Client: TransactionClient })),
    fillDb: createDb(createPool({ url, connections: 2, name: `${name} fills` })),
  }
}

interface FollowerPorts {
  readonly db: Db
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Metrics
  readonly killPoint: KillPointHook
  readonly engine: Engine
  readonly partSpans: PartSpans | null
  readonly fail: (error: Error) => void
}

function composeFollower(config: Config, parts: FollowerPorts) {
  const { db, clock, logger, metrics, killPoint, engine, partSpans, fail } = parts
  const { rpcUrl, rpcWsUrl, rpcTimeoutMs, chainId, pollMs } = config
  const chain = createChain({ url: rpcUrl, chainId, timeoutMs: rpcTimeoutMs })
  const ports = { db, chain, clock, logger, metrics, killPoint }
  const recorded = createEngineRecord({ ...ports, engine }, chainId)
  const record = partSpans?.follow(recorded) ?? recorded
  const follower = new Follower({ ...ports, record }, config)
  const lease = new FollowerLease({
    leases: createLeases(db, randomUUID(), FOLLOWER_LEASE_MS, 'indexer_leases'),
    lifeMs: FOLLOWER_LEASE_MS,
    onError: (err) => logger.warn({ err }, 'renewal or release of the follower lease failed; will retry'),
  })
  let isOwner = false
  const run = async (): Promise<boolean> => {
    const wasOwner = isOwner
    isOwner = await lease.isHeld()
    if (isOwner && !wasOwner) logger.info({}, 'this process follows the chain')
    if (!isOwner) await new Promise((resolve) => setTimeout(resolve, STANDBY_MS))
    else await follower.pass()
    return false
  }
  const loop = new Loop({
    run,
    intervalMs: pollMs,
    retryMs: RETRY_MS,
    retryMaxMs: RETRY_MAX_MS,
    onFailure(err, pause_ms) {
      metrics.failed('follow')
      logger.warn({ err, pause_ms }, 'the chain could not be followed')
      if (err instanceof OtherChainError) fail(err)
    },
  })
  let heads: Heads | undefined
  return {
    loop,
    start() {
      loop.start()
      if (rpcWsUrl !== null) heads = watchHeads(rpcWsUrl, () => loop.wake())
    },
    async stop() {
      await heads?.stop()
      await loop.stop()
      await lease.release()
      chain.close()
    },
  }
}

/** The chain's head was reached within `maxLagMs`, by this process or another, and no shard lags by more than ten chunks. */
function checksOf({ chainId, maxLagMs, chunk }: Config, db: Db, clock: Clock): Check[] {
  async function chain(): Promise<true | CheckFailure> {
    const progress = await db
      .selectFrom('chain_progress')
      .select('completed_at')
      .where('chain_id', '=', chainId)
      .executeTakeFirst()
    if (progress === undefined || progress.completed_at === 0) return 'head_never_reached'
    return clock.now() - progress.completed_at <= maxLagMs || 'head_late'
  }
  async function projection(): Promise<true | CheckFailure> {
    const most = 10 * chunk
    return [...(await projectionLag(db)).values()].every((lag) => lag <= most) || 'projection_late'
  }
  return [
    {
      name: 'database',
      check: async () => (await sql`select 1`.execute(db)).rows.length === 1 || 'no_response',
    },
    { name: 'chain', check: chain },
    { name: 'projection', check: projection },
  ]
}

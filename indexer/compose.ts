/** The wiring of the indexer. */
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import { createDb, createPool, type Db } from '../db/client.ts'
import type { Millis } from '../domain/units.ts'
import { createHealthServer, type Readiness } from '../service/health.ts'
import { createChain } from './adapters/chain.ts'
import { DatabaseSession } from './adapters/database-session.ts'
import { type Heads, watchHeads } from './adapters/heads.ts'
import type { Config } from './config.ts'
import { OtherChainError } from './ingest/blocks.ts'
import { Follower } from './ingest/follow.ts'
import { Loop } from './loop.ts'
import { createMetrics } from './metrics.ts'
import type { Clock, Logger, Metrics, Reached } from './ports.ts'
import { projectionLag } from './project/project-shard.ts'
import { ShardLoops } from './project/shard-loops.ts'

const FOLLOWER_LOCK = 'clearbatch-indexer-follower'
/** How soon another process notices that nobody follows any more. */
const STANDBY_MS = 500
const RETRY_MS = 100
const RETRY_MAX_MS = 5_000

export interface Indexer {
  readonly port: number
  /** Rejects when the process cannot do its work whatever the patience. */
  readonly failed: Promise<never>
  stop(): Promise<void>
}

const clock: Clock = { now: () => Date.now() as Millis }

const killAt =
  (wanted: string | null): Reached =>
  (point) => {
    if (point === wanted) process.kill(process.pid, 'SIGKILL')
  }

export async function startIndexer(config: Config): Promise<Indexer> {
  const logger = pino({ level: config.logLevel, name: 'indexer' })
  const { metrics, registry } = createMetrics()
  const reached = killAt(config.killAt)
  const name = 'clearbatch indexer'
  const db = createDb(createPool({ url: config.databaseUrl, connections: config.databaseConnections, name }))
  const failure = Promise.withResolvers<never>()
  failure.promise.catch(() => {})

  const options = { limit: config.chunk, pollMs: config.projectPollMs, reached }
  const projection = new ShardLoops({ db, clock, logger, metrics }, options)
  const session = new DatabaseSession({
    url: config.databaseUrl,
    name: `${name} session`,
    channels: ['chain', 'journal', 'projected'],
    onNotify(channel, payload) {
      const [shard = ''] = payload.split(':')
      if (channel === 'chain') follow.loop.wake()
      else if (channel === 'projected') projection.wakeWaiting(shard)
      else projection.wake(shard)
    },
    onConnect() {
      follow.loop.wake()
      projection.wake()
    },
    onError: (err) => logger.warn({ err }, 'database session lost'),
  })
  const follow = composeFollower(config, { db, logger, metrics, reached, session, fail: failure.reject })
  const server = createHealthServer(registry, readinessOf(config, db))

  session.start()
  follow.start()
  projection.start()
  await new Promise<void>((resolve) => server.listen(config.port, config.host, resolve))
  const { port } = server.address() as AddressInfo
  logger.info({ port, chain_id: config.chainId }, 'indexer started')

  return {
    port,
    failed: failure.promise,
    async stop() {
      // Blocks first: what they append is projected before the end.
      await follow.stop()
      await projection.stop()
      await session.stop()
      await new Promise((resolve) => server.close(resolve))
      await db.destroy()
      logger.info({}, 'indexer stopped')
    },
  }
}

interface FollowerPorts {
  readonly db: Db
  readonly logger: Logger
  readonly metrics: Metrics
  readonly reached: Reached
  readonly session: DatabaseSession
  readonly fail: (error: Error) => void
}

function composeFollower(config: Config, { db, logger, metrics, reached, session, fail }: FollowerPorts) {
  const { rpcUrl, rpcWsUrl, rpcTimeoutMs, chainId, pollMs } = config
  const chain = createChain({ url: rpcUrl, chainId, timeoutMs: rpcTimeoutMs })
  const follower = new Follower({ db, chain, clock, logger, metrics, reached }, config)
  let isOwner = false
  const run = async (): Promise<boolean> => {
    const wasOwner = isOwner
    isOwner = await session.holdsLock(FOLLOWER_LOCK)
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
      chain.close()
    },
  }
}

/** Ready: the chain's head was reached lately, by this process or another, and the read model is not far behind the log. */
function readinessOf({ chainId, maxLagMs, chunk }: Config, db: Db): Readiness {
  return async () => {
    const problems: Record<string, string> = {}
    const progress = await db
      .selectFrom('chain_progress')
      .select('completed_at')
      .where('chain_id', '=', chainId)
      .executeTakeFirst()
    const age = clock.now() - (progress?.completed_at ?? 0)
    if (progress === undefined || progress.completed_at === 0) problems.chain = 'its head was never reached'
    else if (age > maxLagMs) problems.chain = `its head was last reached ${age} ms ago`
    for (const [shard, lag] of await projectionLag(db)) {
      if (lag > 10 * chunk) problems[`projection ${shard}`] = `${lag} rows behind`
    }
    return problems
  }
}

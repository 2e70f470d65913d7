/**
 * The queue `lanes` of BullMQ, with at most one job per relayer lane: on Redis if `REDIS_URL` is set, otherwise in a Postgres schema. It
 * carries no state that matters.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createPostgresBackend, type Job, type PgPool, Queue, runMigrations, Worker } from 'bullmq'
import pg from 'pg'
import { connectionConfig, TRANSACTION_BOUND } from '../../db/client.ts'
import { PROCESS_ROLES } from '../../db/grants.ts'
import type { Logger } from '../../service/logger.ts'
import { openRedis } from '../../service/redis.ts'
import type { JobEnd, LaneQueue } from '../ports.ts'

const LANES_QUEUE = 'lanes'
const SCHEMA = 'bullmq'
const REDIS_PREFIX = 'keeper'

/** The lock of an active job, renewed at half of this time. A job without a lock is stalled. */
const LOCK_MS = 5_000
/** After a process dies, the second check after the lock's end moves its job to another process. */
const STALLED_CHECK_MS = 3_000
/** A lane that is busy for days keeps its job over many restarts. */
const MOST_STALLS = 1_000
/** Bound of the wait of a job of which the worker was not notified: its connection was lost, or the job is a retry. */
const LOOK_MS = 5_000
/** Pause after an error of the queue. */
const RETRY_MS = 1_000
/** Jobs that have ended are kept for operators. */
const KEPT = { count: 200 } as const
const KEPT_EVENTS = 100

/** A second add changes nothing while the job waits. While it is active, one more job follows it, so that no change is lost at its end. */
export const jobOptions = (lane: string) => ({
  deduplication: { id: lane, keepLastIfActive: true },
  attempts: 10,
  backoff: { type: 'fixed', delay: 1_000 },
  removeOnComplete: KEPT,
  removeOnFail: KEPT,
  // A stack can contain addresses and credentials.
  stackTraceLimit: 0,
})

const WORKER_OPTIONS = {
  autorun: false,
  lockDuration: LOCK_MS,
  stalledInterval: STALLED_CHECK_MS,
  maxStalledCount: MOST_STALLS,
} as const
const QUEUE_OPTIONS = { streams: { events: { maxLen: KEPT_EVENTS } } } as const

interface OpenQueue {
  readonly queue: Queue
  readonly worker: Worker
  /** Ends the connections. */
  close(): Promise<void>
}

/** Commands fail at once while Redis is down, so that no queue of them grows in memory. */
async function openOnRedis(url: string, logger: Logger): Promise<OpenQueue> {
  const connection = openRedis(url, { enableOfflineQueue: false, maxRetriesPerRequest: null })
  connection.on('error', (err) => logger.warn({ err }, 'redis connection error'))
  const options = { connection, prefix: REDIS_PREFIX }
  return {
    queue: new Queue(LANES_QUEUE, { ...options, ...QUEUE_OPTIONS }),
    worker: new Worker(LANES_QUEUE, null, { ...options, ...WORKER_OPTIONS }),
    close: async () => connection.disconnect(),
  }
}

/**
 * BullMQ's migrations start with `create schema if not exists`, which needs the right to create schemas. The keeper
 * lacks it: the migrations of db/ create its schema.
 */
async function withoutSchemaCreation(client: pg.PoolClient): Promise<pg.PoolClient> {
  const { rows } = await client.query('select to_regnamespace($1) is not null as found', [SCHEMA])
  if (rows[0].found !== true) return client
  const query = (text: string, values?: unknown[]) =>
    client.query(/^create schema if not exists /i.test(text) ? 'select' : text, values)
  return { query } as unknown as pg.PoolClient
}

/** One connection is for LISTEN; the second serves the queue and the worker. */
const POSTGRES_CONNECTIONS = 2

async function openOnPostgres(url: string, logger: Logger): Promise<OpenQueue> {
  // Tables that BullMQ creates belong to the group role, whichever login role of a keeper has created it.
  const settings = { search_path: SCHEMA, role: PROCESS_ROLES.keeper, ...TRANSACTION_BOUND }
  const pool = new pg.Pool({
    ...connectionConfig({ url, name: 'keeper lanes' }, settings),
    max: POSTGRES_CONNECTIONS,
  })
  pool.on('error', (err) => logger.warn({ err }, 'lane queue connection error'))
  try {
    const client = await pool.connect()
    await runMigrations(await withoutSchemaCreation(client), SCHEMA).finally(() => client.release())
  } catch (error) {
    await pool.end()
    throw error
  }
  const connection = pool as unknown as PgPool
  const queue = new Queue(LANES_QUEUE, { connection, ...QUEUE_OPTIONS }, createPostgresBackend)
  const worker = new Worker(LANES_QUEUE, null, { connection, ...WORKER_OPTIONS }, createPostgresBackend)
  return {
    queue: queue as unknown as Queue,
    worker: worker as unknown as Worker,
    close: () => pool.end(),
  }
}

/** For this time a process fetches no job after one whose lane is elsewhere, so that another process gets that job. */
const PASS_ON_MS = 200
/** Passes after which the job ends. If the lane is busy, its owner adds another job. */
const MOST_PASSES = 20

export interface LaneFollower {
  /** Whether this process owns the lane's lease. */
  owns(lane: string): boolean
  /** Rejects if a step of the lane fails. */
  follow(lane: string): Promise<JobEnd>
  /** The queue has lost the job of the lane. */
  lost(lane: string): void
}

/**
 * Fetches jobs one after the other, and follows their lanes side by side. BullMQ's own loop would fetch a job again that it has just passed
 * on, before another process can.
 */
function runJobs(worker: Worker, follower: LaneFollower, warn: (err: unknown) => void) {
  const active = new Map<string, { readonly lane: string; readonly token: string }>()
  let fetched = 0
  let isStopping = false

  async function end(job: Job, token: string, reason: JobEnd | Error): Promise<void> {
    if (reason instanceof Error) await job.moveToFailed(reason, token)
    else if (reason === 'elsewhere' && job.attemptsStarted <= MOST_PASSES) await job.moveToWait(token)
    else if (reason !== 'lost') await job.moveToCompleted(reason, token, false)
  }

  async function run(job: Job, token: string): Promise<void> {
    const id = job.id as string
    active.set(id, { lane: job.name, token })
    const reason = await follower.follow(job.name).catch((error: Error) => error)
    // Its lock is no longer renewed: a renewal that finds the job ended must not count it as lost.
    active.delete(id)
    await end(job, token, reason).catch(warn)
  }

  async function fetchOne(block: boolean): Promise<void> {
    const token = `${worker.id}:${fetched++}`
    const job = (await worker.getNextJob(token, { block })) as Job | undefined
    if (job === undefined) return
    const isOwn = follower.owns(job.name)
    const ended = run(job, token)
    if (isOwn) return
    await ended
    await sleep(PASS_ON_MS, undefined, { ref: false })
  }

  async function fetchAll(): Promise<void> {
    while (!isStopping)
      await fetchOne(true).catch(async (err: unknown) => {
        warn(err)
        await sleep(RETRY_MS, undefined, { ref: false })
      })
  }

  async function extendLocks(): Promise<void> {
    const ids = [...active.keys()]
    if (ids.length === 0) return
    const tokens = [...active.values()].map(({ token }) => token)
    for (const id of await worker.extendJobLocks(ids, tokens, LOCK_MS)) {
      const lane = active.get(id)?.lane
      if (lane !== undefined) follower.lost(lane)
    }
  }

  worker.on('error', warn)
  const extending = setInterval(() => void extendLocks().catch(warn), LOCK_MS / 2)
  const looking = setInterval(() => void fetchOne(false).catch(warn), LOOK_MS)
  void worker.startStalledCheckTimer().catch(warn)
  void fetchAll()
  return {
    /** Another process finds the jobs that are still active stalled. */
    async close(): Promise<void> {
      isStopping = true
      clearInterval(extending)
      clearInterval(looking)
      const closed = worker.close()
      await worker.getBackend().disconnectBlocking(true)
      await closed
    },
  }
}

const CLOSE_LIMIT_MS = 1_500

/** Bounds a close: a connection that has just started may never close, and not waiting for it loses nothing. */
const withinLimit = (closing: Promise<unknown>): Promise<unknown> =>
  Promise.race([closing, sleep(CLOSE_LIMIT_MS, undefined, { ref: false })])

/** Every busy lane adds a job per second while the queue cannot be reached: the log gets the first error of each second. */
function oncePerSecond(warn: (err: unknown) => void): (err: unknown) => void {
  let warnedAt = Number.NEGATIVE_INFINITY
  return (err) => {
    if (performance.now() - warnedAt < 1_000) return
    warnedAt = performance.now()
    warn(err)
  }
}

export interface LaneQueueOptions {
  readonly databaseUrl: string
  readonly redisUrl: string | null
}

export interface BullLaneQueue extends LaneQueue {
  /** Opens the queue and runs its jobs. */
  serve(follower: LaneFollower): void
  /** Null while it is not open. */
  readonly queue: () => Queue | null
  /** Jobs by state; empty if the queue does not answer within `COUNT_LIMIT_MS`. */
  countJobs(): Promise<ReadonlyMap<string, number>>
}

const COUNTED = ['waiting', 'active', 'delayed', 'failed', 'completed'] as const
/** Bounds a count, so that a scrape of the metrics never waits for a lost queue. */
const COUNT_LIMIT_MS = 1_000

async function countJobs(queue: Queue | null): Promise<ReadonlyMap<string, number>> {
  if (queue === null) return new Map()
  const limit = sleep(COUNT_LIMIT_MS, {}, { ref: false })
  const counts = await Promise.race([queue.getJobCounts(...COUNTED).catch(() => ({})), limit])
  return new Map(Object.entries(counts))
}

/** A queue that is opened again if it fails to start. Once it is open, it reconnects by itself. */
export function createLaneQueue({ databaseUrl, redisUrl }: LaneQueueOptions, logger: Logger): BullLaneQueue {
  const closing = new AbortController()
  const closed = new Promise<void>((resolve) => closing.signal.addEventListener('abort', () => resolve()))
  const warn = oncePerSecond((err) => logger.warn({ err }, 'lane queue error; the sweep finds the work'))
  let open: Queue | null = null
  let running = Promise.resolve()

  async function runOne(follower: LaneFollower): Promise<void> {
    const { queue, worker, close } =
      redisUrl === null ? await openOnPostgres(databaseUrl, logger) : await openOnRedis(redisUrl, logger)
    queue.on('error', warn)
    const jobs = runJobs(worker, follower, warn)
    try {
      await Promise.race([Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]), closed])
      open = queue
      await closed
    } finally {
      open = null
      await withinLimit(Promise.all([jobs.close(), queue.close()]))
      await withinLimit(close())
    }
  }

  async function run(follower: LaneFollower): Promise<void> {
    while (!closing.signal.aborted) {
      await runOne(follower).catch(warn)
      await Promise.race([closed, sleep(RETRY_MS, undefined, { ref: false })])
    }
  }

  return {
    queue: () => open,
    countJobs: () => countJobs(open),
    serve(follower) {
      running = run(follower)
    },
    /** Dropped while the queue is not open, so that none waits in memory. */
    add: (lane) => void open?.add(lane, null, jobOptions(lane)).catch(warn),
    close(): Promise<void> {
      closing.abort()
      return running
    },
  }
}

/** BullMQ: on Redis where there is one, else in a schema of its own in Postgres. It wakes; it holds no truth. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createPostgresBackend, type PgPool, Queue, runMigrations, Worker, withBackend } from 'bullmq'
import { Redis } from 'ioredis'
import pg from 'pg'
import type { Logger } from '../../service/logger.ts'
import type { WakeQueues } from '../ports.ts'
import type { QueueRule } from '../queues.ts'

const SCHEMA = 'bullmq'
/** Kept for a look at what has run; the work itself is told of in Postgres. */
const KEEP = { removeOnComplete: true, removeOnFail: 100 } as const

interface Sender {
  add(name: string, payload: object, options: object): Promise<unknown>
  close(): Promise<void>
}

/** What this file uses of a BullMQ worker, which is made without `autorun`. */
interface Receiver {
  on(event: 'error', listener: (error: Error) => void): unknown
  waitUntilReady(): Promise<unknown>
  /** Ends when it is closed. */
  run(): Promise<void>
  close(): Promise<void>
}

interface Backend {
  sender(name: string): Sender
  receiver(name: string, onWake: () => void): Receiver
  close(): Promise<void>
}

function redisBackend(url: string, logger: Logger): Backend {
  const producer = new Redis(url, { enableOfflineQueue: false, maxRetriesPerRequest: 1 })
  const consumer = new Redis(url, { maxRetriesPerRequest: null })
  for (const client of [producer, consumer]) client.on('error', (err) => logger.warn({ err }, 'redis'))
  return {
    sender: (name) => watched(new Queue(name, { connection: producer }), logger),
    receiver: (name, onWake) => new Worker(name, async () => onWake(), { connection: consumer, ...RECEIVER }),
    async close() {
      producer.disconnect()
      consumer.disconnect()
    },
  }
}

async function postgresBackend(url: string, logger: Logger): Promise<Backend> {
  const pool = new pg.Pool({
    connectionString: url,
    max: 20,
    keepAlive: true,
    application_name: 'keeper queue',
    options: `-c search_path=${SCHEMA}`,
  })
  pool.on('error', (err) => logger.warn({ err }, 'queue connection'))
  const client = await pool.connect()
  await runMigrations(client, SCHEMA).finally(() => client.release())
  const bound = withBackend(createPostgresBackend)
  return {
    sender: (name) => watched(new bound.Queue(name, { connection: pool as unknown as PgPool }), logger),
    receiver: (name, onWake) =>
      new bound.Worker(name, async () => onWake(), { connection: pool as unknown as PgPool, ...RECEIVER }),
    close: () => pool.end(),
  }
}

const RECEIVER = { autorun: false, removeOnComplete: { count: 0 }, removeOnFail: { count: 100 } }

/** An error of a queue is never fatal: the sweep finds the work. */
function watched<T extends { on(event: 'error', listener: (error: Error) => void): unknown }>(
  of: T,
  logger: Logger,
): T {
  of.on('error', (err) => logger.warn({ err }, 'queue'))
  return of
}

const CLOSE_LIMIT_MS = 1_500

/** A receiver that has only just begun to connect may never close. It holds no truth: nothing is lost by not waiting for it. */
const inTime = async (closing: Promise<void>): Promise<void> =>
  Promise.race([closing, sleep(CLOSE_LIMIT_MS, undefined, { ref: false })])

const REOPEN_MS = 1_000

/** The connection is being made again by those who lost it; anything else would fail again at once. */
const heals = (err: Error): boolean =>
  ('code' in err && /^E[A-Z]/.test(String(err.code))) || err.message === 'Connection is closed.'

/**
 * Listens until it is closed. After an error a new receiver is opened, a second later: BullMQ itself would try again without a pause, and
 * one that never became ready would not let go of the event loop any more.
 */
function listening(open: () => Receiver, logger: Logger): { close(): Promise<void> } {
  const closing = new AbortController()
  const closed = new Promise<void>((resolve) => closing.signal.addEventListener('abort', () => resolve()))
  const listen = async (): Promise<void> => {
    const receiver = open()
    const broken = new Promise<void>((resolve) =>
      receiver.on('error', (err) => {
        logger.warn({ err }, 'queue')
        if (!heals(err)) resolve()
      }),
    )
    const running = receiver
      .waitUntilReady()
      .then(() => (closing.signal.aborted ? undefined : receiver.run()))
    running.catch((err: unknown) => logger.warn({ err }, 'queue'))
    await Promise.race([closed, broken, running.catch(() => {})])
    await inTime(receiver.close()).catch((err: unknown) => logger.warn({ err }, 'queue'))
  }
  const listened = (async (): Promise<void> => {
    while (!closing.signal.aborted) {
      await listen()
      await Promise.race([closed, sleep(REOPEN_MS, undefined, { ref: false })])
    }
  })()
  return {
    close() {
      closing.abort()
      return listened
    },
  }
}

export interface QueueOptions {
  readonly databaseUrl: string
  readonly redisUrl: string | null
}

export async function createQueues(
  { databaseUrl, redisUrl }: QueueOptions,
  logger: Logger,
): Promise<WakeQueues> {
  const backend =
    redisUrl === null ? await postgresBackend(databaseUrl, logger) : redisBackend(redisUrl, logger)
  const open: { close(): Promise<void> }[] = []
  const opened = <T extends { close(): Promise<void> }>(one: T): T => {
    open.push(one)
    return one
  }
  return {
    sender<Payload extends object>(rule: QueueRule<Payload>) {
      const queue = opened(backend.sender(rule.name))
      return (payload: Payload) => {
        queue
          .add('wake', payload, { jobId: rule.jobId(payload), ...KEEP })
          .catch((err: unknown) => logger.warn({ err, queue: rule.name }, 'a wake-up was lost'))
      }
    },
    receiver: (rule, onWake) => opened(listening(() => backend.receiver(rule.name, onWake), logger)),
    async close() {
      await Promise.all(open.map((one) => inTime(one.close())))
      await inTime(backend.close())
    },
  }
}

/** Wake-up queues on BullMQ: on Redis if `REDIS_URL` is set, otherwise in a Postgres schema. They carry no state that matters. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createPostgresBackend, type PgPool, Queue, runMigrations, Worker, withBackend } from 'bullmq'
import { Redis } from 'ioredis'
import pg from 'pg'
import { PROCESS_ROLES } from '../../db/grants.ts'
import type { Logger } from '../../service/logger.ts'
import type { WakeQueues } from '../ports.ts'
import type { QueueRule } from '../queues.ts'

const SCHEMA = 'bullmq'
/** Failed wake-ups stay visible to an operator; the state of the work is in Postgres. */
const KEEP = { removeOnComplete: true, removeOnFail: 100 } as const

interface Sender {
  add(name: string, payload: object, options: object): Promise<unknown>
  close(): Promise<void>
}

/** The part of a BullMQ worker that this file uses. Workers are created without `autorun`. */
interface Receiver {
  on(event: 'error', listener: (error: Error) => void): unknown
  waitUntilReady(): Promise<unknown>
  /** Resolves when the worker is closed. */
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
  for (const client of [producer, consumer])
    client.on('error', (err) => logger.warn({ err }, 'redis connection error'))
  return {
    sender: (name) => logErrors(new Queue(name, { connection: producer }), logger),
    receiver: (name, onWake) => new Worker(name, async () => onWake(), { connection: consumer, ...RECEIVER }),
    async close() {
      producer.disconnect()
      consumer.disconnect()
    },
  }
}

/**
 * BullMQ's migrations begin with `create schema if not exists`, which takes the right to create schemas even if this one exists. The
 * keeper has no such right: its schema is created by the migrations of db/.
 */
async function withoutSchemaCreation(client: pg.PoolClient): Promise<pg.PoolClient> {
  const { rows } = await client.query('select to_regnamespace($1) is not null as found', [SCHEMA])
  if (rows[0].found !== true) return client
  const query = (text: string, values?: unknown[]) =>
    client.query(/^create schema if not exists /i.test(text) ? 'select' : text, values)
  return { query } as unknown as pg.PoolClient
}

async function postgresBackend(url: string, logger: Logger): Promise<Backend> {
  const pool = new pg.Pool({
    connectionString: url,
    max: 20,
    keepAlive: true,
    application_name: 'keeper queue',
    // What the queue creates belongs to the group role, whichever login role of a keeper has created it.
    options: `-c search_path=${SCHEMA} -c role=${PROCESS_ROLES.keeper}`,
  })
  pool.on('error', (err) => logger.warn({ err }, 'queue connection error'))
  const client = await pool.connect()
  await runMigrations(await withoutSchemaCreation(client), SCHEMA).finally(() => client.release())
  const bound = withBackend(createPostgresBackend)
  return {
    sender: (name) => logErrors(new bound.Queue(name, { connection: pool as unknown as PgPool }), logger),
    receiver: (name, onWake) =>
      new bound.Worker(name, async () => onWake(), { connection: pool as unknown as PgPool, ...RECEIVER }),
    close: () => pool.end(),
  }
}

const RECEIVER = { autorun: false, removeOnComplete: { count: 0 }, removeOnFail: { count: 100 } }

/** A queue error is never fatal: the sweep finds the work. */
function logErrors<T extends { on(event: 'error', listener: (error: Error) => void): unknown }>(
  of: T,
  logger: Logger,
): T {
  of.on('error', (err) => logger.warn({ err }, 'queue error'))
  return of
}

const CLOSE_LIMIT_MS = 1_500

/** Bounds a close: a receiver that has just started to connect may never close, and not waiting for it loses nothing. */
const withinLimit = async (closing: Promise<void>): Promise<void> =>
  Promise.race([closing, sleep(CLOSE_LIMIT_MS, undefined, { ref: false })])

const REOPEN_MS = 1_000

/** True if the client library reconnects by itself. Any other error would repeat at once. */
const reconnectsByItself = (err: Error): boolean =>
  ('code' in err && /^E[A-Z]/.test(String(err.code))) || err.message === 'Connection is closed.'

/**
 * Receives until closed. After an error that the connection does not repair, a new receiver is opened `REOPEN_MS` later: BullMQ itself
 * would retry without a pause, and a receiver that never became ready would block the event loop.
 */
function listenUntilClosed(open: () => Receiver, logger: Logger): { close(): Promise<void> } {
  const closing = new AbortController()
  const closed = new Promise<void>((resolve) => closing.signal.addEventListener('abort', () => resolve()))
  const listen = async (): Promise<void> => {
    const receiver = open()
    const broken = new Promise<void>((resolve) =>
      receiver.on('error', (err) => {
        logger.warn({ err }, 'queue error')
        if (!reconnectsByItself(err)) resolve()
      }),
    )
    const running = receiver
      .waitUntilReady()
      .then(() => (closing.signal.aborted ? undefined : receiver.run()))
    running.catch((err: unknown) => logger.warn({ err }, 'queue error'))
    await Promise.race([closed, broken, running.catch(() => {})])
    await withinLimit(receiver.close()).catch((err: unknown) => logger.warn({ err }, 'queue error'))
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
          .catch((err: unknown) =>
            logger.warn({ err, queue: rule.name }, 'wake-up lost; the sweep finds the work'),
          )
      }
    },
    receiver: (rule, onWake) => opened(listenUntilClosed(() => backend.receiver(rule.name, onWake), logger)),
    async close() {
      await Promise.all(open.map((one) => withinLimit(one.close())))
      await withinLimit(backend.close())
    },
  }
}

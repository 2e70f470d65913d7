/**
 * Wake-ups of settlements over one BullMQ relay per process, however many markets there are: on Redis if `REDIS_URL` is set, otherwise in a
 * Postgres schema. They carry no state that matters.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createPostgresRelayBackend, type PgPool, Relay, runMigrations } from 'bullmq'
import pg from 'pg'
import { connectionConfig, TRANSACTION_BOUND } from '../../db/client.ts'
import { PROCESS_ROLES } from '../../db/grants.ts'
import type { MarketId } from '../../domain/units.ts'
import type { Logger } from '../../service/logger.ts'
import { openRedis } from '../../service/redis.ts'
import type { WakeUps } from '../ports.ts'

const SCHEMA = 'bullmq'
/** Unread wake-ups of a process beyond these are dropped; a market needs one. */
const INBOX = 1_000
/** A process that stops without unregistering is forgotten after this time. A third of it is the interval of heartbeats. */
const LEASE_MS = 6_000
const NODE = { namespace: 'keeper', inboxMaxLength: INBOX, leaseDuration: LEASE_MS } as const

interface OpenRelay {
  readonly relay: Relay<unknown>
  close(): Promise<void>
}

const CLOSE_LIMIT_MS = 1_500

/** Bounds a close: a relay that has just started to connect may never close, and not waiting for it loses nothing. */
const withinLimit = async (closing: Promise<void>): Promise<void> =>
  Promise.race([closing, sleep(CLOSE_LIMIT_MS, undefined, { ref: false })])

/** Commands fail at once while Redis is down, so that no queue of them grows in memory. */
async function openOnRedis(url: string, logger: Logger): Promise<OpenRelay> {
  const connection = openRedis(url, { enableOfflineQueue: false, maxRetriesPerRequest: 1 })
  connection.on('error', (err) => logger.warn({ err }, 'redis connection error'))
  const relay = new Relay({ ...NODE, connection }) as Relay<unknown>
  return {
    relay,
    async close() {
      await withinLimit(relay.close())
      connection.disconnect()
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

/** One connection listens, the other sends and reads. */
const POSTGRES_CONNECTIONS = 2

async function openOnPostgres(url: string, logger: Logger): Promise<OpenRelay> {
  // What BullMQ creates belongs to the group role, whichever login role of a keeper has created it.
  const settings = { search_path: SCHEMA, role: PROCESS_ROLES.keeper, ...TRANSACTION_BOUND }
  const pool = new pg.Pool({
    ...connectionConfig({ url, name: 'keeper wake-ups' }, settings),
    max: POSTGRES_CONNECTIONS,
  })
  pool.on('error', (err) => logger.warn({ err }, 'wake-up connection error'))
  try {
    const client = await pool.connect()
    await runMigrations(await withoutSchemaCreation(client), SCHEMA).finally(() => client.release())
  } catch (error) {
    await pool.end()
    throw error
  }
  const connection = pool as unknown as PgPool
  const relay = new Relay({ ...NODE, connection, backend: createPostgresRelayBackend }) as Relay<unknown>
  return {
    relay,
    async close() {
      await withinLimit(relay.close())
      await withinLimit(pool.end())
    },
  }
}

const REOPEN_MS = 1_000

/** A relay that is opened again if it fails to start. Once started, it reconnects by itself. */
function keepRelay(open: () => Promise<OpenRelay>, onWake: (marketId: MarketId) => void, logger: Logger) {
  const closing = new AbortController()
  const closed = new Promise<void>((resolve) => closing.signal.addEventListener('abort', () => resolve()))
  const warn = (err: unknown): void => logger.warn({ err }, 'wake-up error; the sweep finds the work')
  let started: Relay<unknown> | null = null

  async function start(relay: Relay<unknown>): Promise<void> {
    await relay.waitUntilReady()
    await relay.subscribe<MarketId>('settle.*', ({ data }) => onWake(data))
    started = relay
    await closed
  }

  async function runOne(): Promise<void> {
    const { relay, close } = await open()
    relay.on('error', warn)
    await Promise.race([start(relay), closed]).catch(warn)
    started = null
    await close()
  }

  const running = (async (): Promise<void> => {
    while (!closing.signal.aborted) {
      await runOne().catch(warn)
      await Promise.race([closed, sleep(REOPEN_MS, undefined, { ref: false })])
    }
  })()
  return {
    /** Dropped while the relay is not started, so that none waits in memory. */
    publish: (marketId: MarketId): void => void started?.publish(`settle.${marketId}`, marketId).catch(warn),
    close(): Promise<void> {
      closing.abort()
      return running
    },
  }
}

export interface WakeUpOptions {
  readonly databaseUrl: string
  readonly redisUrl: string | null
}

export function createWakeUps({ databaseUrl, redisUrl }: WakeUpOptions, logger: Logger): WakeUps {
  const open = (): Promise<OpenRelay> =>
    redisUrl === null ? openOnPostgres(databaseUrl, logger) : openOnRedis(redisUrl, logger)
  const listeners = new Map<MarketId, () => void>()
  const relay = keepRelay(open, (marketId) => listeners.get(marketId)?.(), logger)
  return {
    send(marketId) {
      const local = listeners.get(marketId)
      if (local === undefined) relay.publish(marketId)
      else local()
    },
    listen(marketId, onWake) {
      listeners.set(marketId, onWake)
      return () => {
        if (listeners.get(marketId) === onWake) listeners.delete(marketId)
      }
    },
    async close() {
      listeners.clear()
      await relay.close()
    },
  }
}

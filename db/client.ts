/** Connections to Postgres. int8 is parsed to a safe integer, numeric (always wei) to a bigint. */
import { Kysely, PostgresDialect, type Transaction } from 'kysely'
import pg from 'pg'
import { invariant } from '../domain/invariant.ts'
import { connectionTarget } from '../service/database-address.ts'
import { PreparingClient } from './prepared.ts'
import type { Database } from './schema.ts'

export type Db = Kysely<Database>
export type Tx = Transaction<Database>

const parseCount = (text: string): number => {
  const value = Number(text)
  invariant(Number.isSafeInteger(value), `int8 beyond the safe integers: ${text}`)
  return value
}

const typeParser = (oid: number, format?: 'text' | 'binary'): unknown => {
  if (oid === pg.types.builtins.INT8) return parseCount
  if (oid === pg.types.builtins.NUMERIC) return BigInt
  return pg.types.getTypeParser(oid, format)
}

export interface ConnectionOptions {
  readonly url: string
  readonly connections: number
  /** Shown in pg_stat_activity. */
  readonly name: string
  /**
   * Bound of the pause between two statements of a transaction, ms; 0 for none. A process that is stopped within a transaction would else
   * keep its locks for ever.
   */
  readonly idleInTransactionMs?: number
  /** Run-time parameters of the server for these connections. */
  readonly settings?: Readonly<Record<string, string>>
  /** Bound of a query's duration; beyond it the connection counts as broken. */
  readonly queryTimeoutMs?: number
  /** Sends the begin and the commit of a transaction with its statements (`transaction-client.ts`). */
  readonly Client?: typeof PreparingClient
}

/** Bound of a query's wait for a connection of the pool. */
const CONNECT_TIMEOUT_MS = 10_000

const transactionBound = (ms: number) => ({ idle_in_transaction_session_timeout: `${ms}` })

/** See `idleInTransactionMs`. */
export const TRANSACTION_BOUND = transactionBound(2_000)

/** Silence after which each side of a connection probes the other side. */
const KEEPALIVE_AFTER_S = 2

/**
 * Bounds how long the server waits for a client that does not receive, for example behind a partition; then it rolls
 * back. Without effect on Unix sockets.
 */
const TCP_SETTINGS = {
  tcp_keepalives_idle: `${KEEPALIVE_AFTER_S}`,
  tcp_keepalives_interval: '1',
  tcp_keepalives_count: '3',
  tcp_user_timeout: '4000',
}

/** Every statement is short: compiling one, as Postgres does if it overestimates the rows, takes longer than executing it (200 ms). */
const SETTINGS = { jit: 'off' }

/**
 * For connections that look up rows by key. Plans are made once, perhaps on empty tables, but must use indexes on full
 * tables: plan nodes that read a whole table are disabled.
 */
export const LOOKUP_SETTINGS = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_material: 'off',
}

const serverOptions = (settings: Readonly<Record<string, string>>): string =>
  Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${value}`)
    .join(' ')

/** Settings of every connection of a process, also for LISTEN only: both sides notice a silent peer. */
export const connectionConfig = (
  { url, name }: Pick<ConnectionOptions, 'url' | 'name'>,
  settings: Readonly<Record<string, string>> = {},
) => ({
  ...connectionTarget(url),
  application_name: name,
  connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  keepAlive: true,
  keepAliveInitialDelayMillis: KEEPALIVE_AFTER_S * 1_000,
  options: serverOptions({ ...TCP_SETTINGS, ...settings }),
})

export const createPool = (options: ConnectionOptions): pg.Pool => {
  const { connections, settings, queryTimeoutMs, Client = PreparingClient } = options
  const { idleInTransactionMs: idleMs } = options
  const bound = idleMs === undefined ? TRANSACTION_BOUND : transactionBound(idleMs)
  const pool = new pg.Pool({
    ...connectionConfig(options, { ...SETTINGS, ...bound, ...settings }),
    Client,
    max: connections,
    // Queries are sent without waiting for earlier results; the server runs them in order.
    pipeline: true,
    // Idle connections stay open, because new connections would delay the first queries with handshakes, caches and
    // plans.
    idleTimeoutMillis: 0,
    ...(queryTimeoutMs && { query_timeout: queryTimeoutMs }),
    types: { getTypeParser: typeParser as typeof pg.types.getTypeParser },
  })
  // An idle connection that breaks (a restart of Postgres) is replaced at the next query. Without a listener its error would end the process.
  pool.on('error', () => {})
  // The same holds for a connection in use; its queries reject with the error.
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

export const createDb = (pool: pg.Pool): Db =>
  new Kysely<Database>({ dialect: new PostgresDialect({ pool }) })

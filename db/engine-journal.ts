/**
 * Journal and lease of the engine on Postgres. An append locks the token's row: a takeover waits for it, and an append
 * after a takeover stores nothing.
 */
import pg from 'pg'
import type { ShardEnd } from './journal.ts'
import { runTogether, type Statement } from './round-trip.ts'

/**
 * Fails with `NOT_NEXT` unless the group is next, so that statements sent behind it are not executed. The time is
 * bounded (not by Postgres 15), because a frozen owner would block a takeover.
 */
export const APPEND = `
  with bound as materialized (
    select case when current_setting('transaction_timeout', true) is not null then set_config('transaction_timeout', '3000', true) end
  )
  select append_engine_group($1::bigint, $2::bigint, $3::integer, $4::json, $5::text, $6::text) from bound
`
const NOT_NEXT = 'CB001'

/** Fails with `NOT_NEXT` unless the tables contain exactly the groups before. Bounded like an append, whose rows it writes several times over. */
const ADVANCE = `
  with bound as materialized (
    select case when current_setting('transaction_timeout', true) is not null then set_config('transaction_timeout', '5000', true) end
  )
  select advance_engine_tables($1::bigint, $2::bigint, $3::bigint, $4::json) from bound
`

const READ = `
  select number, token, version, rows, before, digest from engine_groups where number > $1 order by number limit $2
`
const READ_WRITTEN = `
  select number, token, version, rows, before, digest from engine_groups
  where number > $1 and number <= (select written from engine_tables) order by number limit $2
`
const READ_LEASE = 'select token, renewals, is_released from engine_lease'
/** The lease's row is locked first: of two candidates the second finds it changed. */
const TAKE = `
  with expired as materialized (
    select token from engine_lease where token = $1 and renewals = $2 and is_released = $3 for update
  ),
  taken as (update engine_ownership o set token = o.token + 1 from expired where o.token = expired.token returning o.token)
  update engine_lease l set token = taken.token, renewals = l.renewals + 1, is_released = false from taken
  returning l.token
`
const RENEW = 'update engine_lease set renewals = renewals + 1 where token = $1 returning token'
const RELEASE = 'update engine_lease set is_released = true where token = $1 returning token'

export interface StoredGroup {
  readonly number: number
  readonly token: number
  readonly version: number
  readonly rows: readonly unknown[]
  readonly before: string
  readonly digest: string
}

export interface StoredLease {
  readonly token: number
  readonly renewals: number
  readonly isReleased: boolean
}

/** How a statement without a result ended. */
export type AppendFailure = 'unknown' | 'content' | 'unavailable'

/** Errors by which the server refuses what a statement contains: data exceptions, violated constraints, exceeded limits. */
const CONTENT = /^(22|23|54)/

/**
 * A FATAL or PANIC error ends the connection, perhaps after the commit, and so does a broken connection. Every other
 * error answers the statement, which is then aborted.
 */
export function failureOf(error: unknown): AppendFailure {
  if (!(error instanceof pg.DatabaseError)) return 'unknown'
  if (error.severity !== 'ERROR') return 'unknown'
  return CONTENT.test(error.code ?? '') ? 'content' : 'unavailable'
}

const run = async <Row>(pool: pg.Pool, statement: Statement): Promise<Row[]> =>
  (await runOn(await pool.connect(), [statement]))[0] as Row[]

/** Runs the statements as one transaction, in one round trip, and releases the connection. */
async function runOn(client: pg.PoolClient, statements: readonly Statement[]): Promise<readonly object[][]> {
  const { rows, error } = await runTogether(client, statements)
  // A connection after an error may have a statement under way: it is not used again.
  client.release(error ?? undefined)
  if (error !== null) throw error
  return rows as readonly object[][]
}

/** Runs the statements, the first of which may fail with `NOT_NEXT`: false then, and nothing is stored. Releases the connection. */
async function runNext(client: pg.PoolClient, statements: readonly Statement[]): Promise<boolean> {
  try {
    // Without `begin`, the server commits everything before the Sync as a whole.
    await runOn(client, statements)
    return true
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === NOT_NEXT) return false
    throw error
  }
}

/**
 * True if the group and `evidence` are stored; false if number or token is not next. If it throws, nothing is stored,
 * unless `failureOf` does not know the error. Releases the connection.
 */
export const appendGroup = (
  client: pg.PoolClient,
  group: StoredGroup,
  evidence: readonly Statement[] = [],
): Promise<boolean> => runNext(client, [appendStatement(group), ...evidence])

function appendStatement({ number, token, version, rows, before, digest }: StoredGroup): Statement {
  const values = [number, token, version, JSON.stringify(rows), before, digest]
  return { name: 'engine-append', text: APPEND, values }
}

/** Stores the first group, which has no rows. */
export const appendGenesis = (client: pg.PoolClient, group: StoredGroup): Promise<boolean> =>
  runNext(client, [appendStatement(group), advance({ token: group.token, from: 0, to: group.number }, [])])

/** A write of the tables that follow the journal. */
export interface TableStep {
  readonly token: number
  /** The last group that the tables contain before the write, and after it. */
  readonly from: number
  readonly to: number
}

/** Changes of one write. */
export interface TableContent {
  /** Shards with rows in the groups of the write. */
  readonly ends: readonly ShardEnd[]
  readonly statements: readonly Statement[]
}

const advance = ({ token, from, to }: TableStep, ends: readonly ShardEnd[]): Statement => ({
  name: 'engine-advance',
  text: ADVANCE,
  values: [token, from, to, JSON.stringify(ends)],
})

/** True if the statements are executed as one transaction; false if the tables contain other groups or the token is not the current one. Releases the connection. */
export const writeTables = (
  client: pg.PoolClient,
  step: TableStep,
  { ends, statements }: TableContent,
): Promise<boolean> => runNext(client, [advance(step, ends), ...statements])

/** Rows that the server has refused, by the statement that would have written them. */
export class RefusedRows {
  readonly #rows = new Map<string, Set<string>>()

  add({ name }: Statement, row: unknown): void {
    const known = this.#rows.get(name) ?? new Set()
    this.#rows.set(name, known.add(JSON.stringify(row)))
  }

  /** The statement without them; null if nothing is left. */
  without(statement: Statement): Statement | null {
    const refused = this.#rows.get(statement.name)
    if (refused === undefined) return statement
    const rows = rowsOf(statement).filter((row) => !refused.has(JSON.stringify(row)))
    return rows.length === 0 ? null : { ...statement, values: [JSON.stringify(rows)] }
  }
}

/**
 * The same for statements that the server rejects for their content: rejected rows are left out and added to `refused`,
 * also if the write fails, so that a repetition skips them.
 */
export async function writeAround(
  client: pg.PoolClient,
  step: TableStep,
  { ends, statements }: TableContent,
  refused: RefusedRows,
  onRefused: (statement: Statement, row: unknown, error: unknown) => void,
): Promise<boolean> {
  try {
    await client.query('begin')
    const { text, values } = advance(step, ends)
    await client.query(text, [...values])
    for (const statement of statements) {
      const rest = refused.without(statement)
      if (rest !== null)
        await tryRows(client, rest, (row, error) => {
          refused.add(statement, row)
          onRefused(statement, row, error)
        })
    }
    await client.query('commit')
    client.release()
    return true
  } catch (error) {
    client.release(error as Error)
    if (error instanceof pg.DatabaseError && error.code === NOT_NEXT) return false
    throw error
  }
}

/** Executes the statement, or its halves if the server refuses it. */
async function tryRows(
  client: pg.PoolClient,
  statement: Statement,
  onRefused: (row: unknown, error: unknown) => void,
): Promise<void> {
  const { text, values } = statement
  await client.query('savepoint before_rows')
  try {
    await client.query(text, [...values])
    await client.query('release savepoint before_rows')
  } catch (error) {
    const rows = rowsOf(statement)
    if (failureOf(error) !== 'content' || rows.length === 0) throw error
    await client.query('rollback to savepoint before_rows')
    if (rows.length === 1) return onRefused(rows[0], error)
    const half = rows.length >> 1
    for (const some of [rows.slice(0, half), rows.slice(half)])
      await tryRows(client, { ...statement, values: [JSON.stringify(some)] }, onRefused)
  }
}

/** Rows of a statement whose one parameter has them as JSON. */
function rowsOf({ values }: Statement): unknown[] {
  const [first] = values
  if (values.length !== 1 || typeof first !== 'string' || !first.startsWith('[')) return []
  return JSON.parse(first) as unknown[]
}

/** The last group that the tables contain. */
export async function readWritten(pool: pg.Pool): Promise<number> {
  const [row] = await run<{ written: number }>(pool, {
    name: 'engine-written',
    text: 'select written from engine_tables',
    values: [],
  })
  if (row === undefined) throw new Error('the table engine_tables has no row: the migration inserts it')
  return row.written
}

/** Groups that the tables contain. */
export const readWrittenGroups = (pool: pg.Pool, after: number, most: number): Promise<StoredGroup[]> =>
  run<StoredGroup>(pool, { name: 'engine-read-written', text: READ_WRITTEN, values: [after, most] })

export const readGroups = (pool: pg.Pool, after: number, most: number): Promise<StoredGroup[]> =>
  run<StoredGroup>(pool, { name: 'engine-read', text: READ, values: [after, most] })

interface LeaseRow {
  readonly token: number
  readonly renewals: number
  readonly is_released: boolean
}

export async function readLease(pool: pg.Pool): Promise<StoredLease> {
  const [row] = await run<LeaseRow>(pool, { name: 'engine-lease', text: READ_LEASE, values: [] })
  if (row === undefined) throw new Error('the table engine_lease has no row: the migration inserts it')
  return { token: row.token, renewals: row.renewals, isReleased: row.is_released }
}

/** The next token, if the lease is still as it was read. */
export async function takeLease(pool: pg.Pool, seen: StoredLease): Promise<number | null> {
  const values = [seen.token, seen.renewals, seen.isReleased]
  const [row] = await run<{ token: number }>(pool, { name: 'engine-take', text: TAKE, values })
  return row?.token ?? null
}

/** False if the token is no longer the current one. */
export const renewLease = async (pool: pg.Pool, token: number): Promise<boolean> =>
  (await run(pool, { name: 'engine-renew', text: RENEW, values: [token] })).length === 1

export async function releaseLease(pool: pg.Pool, token: number): Promise<void> {
  await run(pool, { name: 'engine-release', text: RELEASE, values: [token] })
}

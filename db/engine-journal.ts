/**
 * Journal and lease of the engine on Postgres. One transaction appends a group, with statements for the tables that follow it, if its number follows
 * the head and its token is the current one. It locks the row of the token: a takeover, which changes it, waits for the append, and an append
 * that waits for a takeover finds another token and stores nothing.
 */
import pg from 'pg'
import { runTogether, type Statement } from './round-trip.ts'

/**
 * Fails with `NOT_NEXT` unless the group is the next one: nothing sent behind it is executed then. An owner that is frozen while it sends an append holds
 * the row of the token, and a takeover waits for it: the transaction is bounded. Postgres 15 cannot bound it.
 */
export const APPEND = `
  with bound as materialized (
    select case when current_setting('transaction_timeout', true) is not null then set_config('transaction_timeout', '3000', true) end
  )
  select append_engine_group($1::bigint, $2::bigint, $3::integer, $4::json, $5::text, $6::text) from bound
`
const NOT_NEXT = 'CB001'

const READ = `
  select number, token, version, rows, before, digest from engine_groups where number > $1 order by number limit $2
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

/**
 * True if the group is stored, and what the statements write with it; false if its number or its token is not the next one. Throws the error of the
 * first statement that fails: then nothing is stored, unless `failureOf` does not know it. Releases the connection.
 */
export async function appendWithTables(
  client: pg.PoolClient,
  group: StoredGroup,
  tables: readonly Statement[],
): Promise<boolean> {
  const { number, token, version, before, digest } = group
  const values = [number, token, version, JSON.stringify(group.rows), before, digest]
  try {
    // Without a begin, the server commits what precedes the one Sync as a whole.
    await runOn(client, [{ name: 'engine-append', text: APPEND, values }, ...tables])
    return true
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === NOT_NEXT) return false
    throw error
  }
}

/** Appends a group that no table follows. */
export const appendGroup = (client: pg.PoolClient, group: StoredGroup): Promise<boolean> =>
  appendWithTables(client, group, [])

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

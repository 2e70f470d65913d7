/** The first group of an exchange: the markets that were listed before its engine started for the first time. */
import { sql } from 'kysely'
import type pg from 'pg'
import type { Db } from '../../db/client.ts'
import { appendGenesis } from '../../db/engine-journal.ts'
import { AppliedRows } from '../../domain/exchange/applied-rows.ts'
import type { Entry } from '../../domain/exchange/apply.ts'
import { createState } from '../../domain/exchange/state.ts'
import { GROUP_VERSION } from './ports.ts'

/** More rows than listings and settings of markets have. */
const MOST_ROWS = 10_000

/** The database has a history that no engine has written, and that lacks what a state needs. */
export class ForeignHistoryError extends Error {
  override readonly name = 'ForeignHistoryError'
}

const SETUP = new Set([
  'market_listed',
  'calendar_set',
  'impact_notional_set',
  'protection_announced',
  'fees_announced',
])

/**
 * Throws a ForeignHistoryError if the database, of this schema or an earlier one, has a history that no engine has written. It changes nothing: the version that has written the history can go on.
 */
export async function requireEngineHistory(db: Db): Promise<void> {
  const { rows } = await sql<{ name: string | null }>`
    select to_regclass(name)::text as name from unnest(array['public.kysely_migration', 'public.engine_groups', 'public.journal']) name
  `.execute(db)
  const [migrations, groups, journal] = rows.map(({ name }) => name)
  if (migrations === null) return
  if (groups !== null && (await sql`select from engine_groups limit 1`.execute(db)).rows.length > 0) return
  if (journal === null) throw foreign('rows')
  const other = (await earlyRows(db)).find(({ row }) => !SETUP.has(row.kind))
  if (other !== undefined) throw foreign(`a row ${other.row.kind}`)
}

const foreign = (what: string): ForeignHistoryError =>
  new ForeignHistoryError(
    `the journal has ${what} of a version without an engine: start with an empty database (\`npm start -- --fresh\`)`,
  )

const earlyRows = (db: Db): Promise<Entry[]> =>
  db
    .selectFrom('journal')
    .select(['shard', 'seq', 'row'])
    .orderBy('shard')
    .orderBy('seq')
    .limit(MOST_ROWS + 1)
    .execute() as Promise<Entry[]>

/** Stores the group, unless another member has. The journal has no group yet. */
export async function storeGenesis(db: Db, pool: pg.Pool): Promise<void> {
  await requireEngineHistory(db)
  const rows = await earlyRows(db)
  if (rows.length > MOST_ROWS)
    throw new ForeignHistoryError(
      `the journal has more than ${MOST_ROWS} rows from before the engine: expected at most as many listings and settings of markets`,
    )
  const applied = new AppliedRows(createState())
  const before = applied.digest()
  for (const row of rows) applied.apply(row)
  const group = { number: 1, token: 0, version: GROUP_VERSION, rows, before, digest: applied.digest() }
  await appendGenesis(await pool.connect(), group)
}

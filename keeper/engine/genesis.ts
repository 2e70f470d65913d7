/** The first group of an exchange. */
import { sql } from 'kysely'
import type pg from 'pg'
import type { Db } from '../../db/client.ts'
import { appendGenesis } from '../../db/engine-journal.ts'
import { AppliedRows } from '../../domain/exchange/applied-rows.ts'
import { createState } from '../../domain/exchange/state.ts'
import { GROUP_VERSION } from './ports.ts'

/** The database has a history that no engine has written, and that lacks what a state needs. */
export class ForeignHistoryError extends Error {
  override readonly name = 'ForeignHistoryError'
}

/**
 * Throws a ForeignHistoryError if the database, of this schema or an earlier one, has a history that no engine has written. It changes nothing: the version that has written the history can go on.
 */
export async function requireEngineHistory(db: Db): Promise<void> {
  const { rows } = await sql<{ migrations: string | null; groups: string | null; shards: string | null }>`
    select to_regclass('public.kysely_migration')::text as migrations, to_regclass('public.engine_groups')::text as groups,
      to_regclass('public.shards')::text as shards
  `.execute(db)
  const [{ migrations, groups, shards }] = rows as [(typeof rows)[number]]
  if (migrations === null) return
  if (groups !== null && (await sql`select from engine_groups limit 1`.execute(db)).rows.length > 0) return
  const isEmpty =
    groups !== null &&
    shards !== null &&
    (await sql`select from shards limit 1`.execute(db)).rows.length === 0
  if (!isEmpty)
    throw new ForeignHistoryError(
      'the database is of a version without an engine: start with an empty one (`npm start -- --fresh`)',
    )
}

/** Stores the group, unless another member has. The journal has no group yet. */
export async function storeGenesis(db: Db, pool: pg.Pool): Promise<void> {
  await requireEngineHistory(db)
  const digest = new AppliedRows(createState()).digest()
  const group = { number: 1, token: 0, version: GROUP_VERSION, rows: [], before: digest, digest }
  await appendGenesis(await pool.connect(), group)
}

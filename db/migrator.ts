/** The migrations in their order, and the check that a process and its database have the same schema. */
import { sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import type { Db } from './client.ts'
import * as exchange from './migrations/0100-exchange.ts'
import * as readModel from './migrations/0101-read-model.ts'
import * as journalOfGroups from './migrations/0102-journal-of-groups.ts'
import * as endsInPlace from './migrations/0103-ends-in-place.ts'
import * as chainFills from './migrations/0104-chain-fills.ts'
import * as boundExchange from './migrations/0105-bound-exchange.ts'
import * as accountsAndPositions from './migrations/0106-accounts-and-positions.ts'
import * as ordersAtTheirEnds from './migrations/0107-orders-at-their-ends.ts'
import * as chainFillsThatMayChange from './migrations/0108-chain-fills-that-may-change.ts'
import * as keeperReadsBoundExchange from './migrations/0109-keeper-reads-bound-exchange.ts'

export const MIGRATIONS: Record<string, Migration> = {
  '0100-exchange': exchange,
  '0101-read-model': readModel,
  '0102-journal-of-groups': journalOfGroups,
  '0103-ends-in-place': endsInPlace,
  '0104-chain-fills': chainFills,
  '0105-bound-exchange': boundExchange,
  '0106-accounts-and-positions': accountsAndPositions,
  '0107-orders-at-their-ends': ordersAtTheirEnds,
  '0108-chain-fills-that-may-change': chainFillsThatMayChange,
  '0109-keeper-reads-bound-exchange': keeperReadsBoundExchange,
}

/** Schemas before it were never released: their databases are not carried over. */
const FIRST = Object.keys(MIGRATIONS)[0] as string
/** The schema that this version needs. */
export const NEWEST = Object.keys(MIGRATIONS).at(-1) as string

export const createMigrator = (db: Db): Migrator =>
  new Migrator({ db, provider: { getMigrations: async () => MIGRATIONS } })

/** Migrates the database to the newest schema. Several processes may run it at once. The connection must be the owner's. */
export async function migrate(db: Db): Promise<void> {
  const found = await newestMigration(db)
  if (found !== null && found < FIRST) throw versionError(found)
  const { error } = await createMigrator(db).migrateToLatest()
  if (error) throw error
}

/** The database has another schema than this version of the code needs. */
export class SchemaVersionError extends Error {
  override readonly name = 'SchemaVersionError'
}

/** Throws SchemaVersionError unless the newest migration is applied and none is newer. Every process calls it before it serves. */
export async function checkSchema(db: Db): Promise<void> {
  const found = await newestMigration(db)
  if (found !== NEWEST) throw versionError(found)
}

function versionError(found: string | null): SchemaVersionError {
  return new SchemaVersionError(
    `the database has schema ${found ?? 'none'}, this version needs ${NEWEST}: ${remedyOf(found)}`,
  )
}

function remedyOf(found: string | null): string {
  if (found !== null && found < FIRST)
    return 'it is of a version before the first release and cannot be migrated; use a new database (`npm start -- --fresh`)'
  if (found !== null && found > NEWEST) return 'start a version of the process that has this schema'
  return 'run `npm run cb -- db migrate` with the DATABASE_URL of the owner of the database'
}

/** Null before the first migration. */
export async function newestMigration(db: Db): Promise<string | null> {
  const { rows: tables } = await sql<{ found: boolean }>`
    select to_regclass('kysely_migration') is not null as found
  `.execute(db)
  if (tables[0]?.found !== true) return null
  const { rows } = await sql<{ name: string | null }>`select max(name) as name from kysely_migration`.execute(
    db,
  )
  return rows[0]?.name ?? null
}

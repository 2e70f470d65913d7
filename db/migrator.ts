/** The migrations in their order, and the check that a process and its database have the same schema. */
import { setTimeout as sleep } from 'node:timers/promises'
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
import * as engineHandovers from './migrations/0110-engine-handovers.ts'

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
  '0110-engine-handovers': engineHandovers,
}

/** Schemas before it were never released: their databases are not carried over. */
const FIRST = Object.keys(MIGRATIONS)[0] as string
/** The newest schema of this version. */
export const NEWEST = Object.keys(MIGRATIONS).at(-1) as string

/** Name of a contract step, for example `0112-contract-0111-drop-labels`: processes with a schema before 0111 cannot use the database after it. */
const CONTRACT = /^(\d{4})-contract-(\d{4})-/

/** Number of the oldest schema whose processes can use a database with this migration; 0 for a migration that only expands. */
const oldestAfter = (name: string): number => Number(CONTRACT.exec(name)?.[2] ?? 0)

const numberOf = (name: string): number => Number(name.slice(0, 4))

/** The newest schema that a version must find: its own contract steps may follow later, unless they exclude the version before the step. */
export const neededOf = (names: readonly string[]): string =>
  names.findLast((name) => oldestAfter(name) === 0 || oldestAfter(name) === numberOf(name)) as string

const NEEDED = neededOf(Object.keys(MIGRATIONS))

export const createMigrator = (db: Db, migrations: Record<string, Migration> = MIGRATIONS): Migrator =>
  new Migrator({ db, provider: { getMigrations: async () => migrations } })

/** Attempts of a migration that does not get a lock within the connection's `lock_timeout`, and the pause between two. */
const LOCK_TRIES = 60
const LOCK_PAUSE_MS = 1_000
const LOCK_NOT_AVAILABLE = '55P03'

export interface MigrateOptions {
  /** False: a database that processes may use is migrated up to its next contract step. */
  readonly isContracted?: boolean
  readonly migrations?: Record<string, Migration>
}

/**
 * Migrates the database to the newest schema. Several processes may run it at once. The connection must be the owner's. Returns the contract
 * steps that wait.
 */
export async function migrate(
  db: Db,
  { isContracted = true, migrations = MIGRATIONS }: MigrateOptions = {},
): Promise<readonly string[]> {
  const applied = await appliedMigrations(db)
  const found = applied.at(-1) ?? null
  if (found !== null && found < FIRST) throw versionError(found, 'needs')
  const pending = Object.keys(migrations).filter((name) => !applied.includes(name))
  const first = pending.findIndex((name) => oldestAfter(name) > 0)
  const waiting = isContracted || found === null || first === -1 ? [] : pending.slice(first)
  const target = pending.slice(0, pending.length - waiting.length).at(-1)
  if (target !== undefined) await reach(createMigrator(db, migrations), target)
  return waiting
}

/** Retried: a migration that waited for a lock without a bound would hold up all later statements on the table. */
async function reach(migrator: Migrator, target: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const { error } = await migrator.migrateTo(target)
    if (error === undefined) return
    if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE || attempt === LOCK_TRIES) throw error
    await sleep(LOCK_PAUSE_MS)
  }
}

/** This version of the code cannot use the database's schema. */
export class SchemaVersionError extends Error {
  override readonly name = 'SchemaVersionError'
}

/**
 * Throws SchemaVersionError if the needed schema is missing or a contract step excludes this version. Every process calls it
 * before it serves, also beside a later version.
 */
export async function checkSchema(db: Db): Promise<void> {
  const applied = await appliedMigrations(db)
  const found = applied.at(-1) ?? null
  if (found === null || found < NEEDED) throw versionError(found, 'needs')
  const excluding = applied.find((name) => oldestAfter(name) > numberOf(NEEDED))
  if (excluding !== undefined) throw versionError(excluding, 'has only')
}

function versionError(found: string | null, verb: 'needs' | 'has only'): SchemaVersionError {
  return new SchemaVersionError(
    `the database has schema ${found ?? 'none'}, this version ${verb} ${NEEDED}: ${remedyOf(found)}`,
  )
}

function remedyOf(found: string | null): string {
  if (found !== null && found < FIRST)
    return 'it is of a version before the first release and cannot be migrated; use a new database (`npm start -- --fresh`)'
  if (found !== null && found > NEEDED) return 'start a version of the process that has this schema'
  return 'run `npm run cb -- db migrate` with the DATABASE_URL of the owner of the database'
}

/** In their order; empty before the first migration. */
async function appliedMigrations(db: Db): Promise<readonly string[]> {
  const { rows: tables } = await sql<{ found: boolean }>`
    select to_regclass('kysely_migration') is not null as found
  `.execute(db)
  if (tables[0]?.found !== true) return []
  const { rows } = await sql<{
    name: string
  }>`select name from kysely_migration order by name collate "C"`.execute(db)
  return rows.map(({ name }) => name)
}

/** Null before the first migration. */
export const newestMigration = async (db: Db): Promise<string | null> =>
  (await appliedMigrations(db)).at(-1) ?? null

/** Databases for tests: one server per run, one database per test file. */
import { randomBytes } from 'node:crypto'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import pg from 'pg'
import { createDb, createPool } from '../../db/client.ts'
import { PROCESS_ROLES, type Process } from '../../db/grants.ts'
import { migrate } from '../../db/migrator.ts'
import { type Postgres, startPostgres } from '../../stack/postgres.ts'
import { MIRROR_SCHEMA } from './mirror.ts'

const TEMPLATE = 'template_migrated'
/** Key of the advisory lock (any constant): only one process of a run builds the template, and all other processes wait. */
const TEMPLATE_LOCK = 7_431_001

/** Starts a server that ends with this process, even by kill -9, and deletes its files. */
export async function startTestPostgres(): Promise<Postgres> {
  return startPostgres({ dir: await mkdtemp(join(tmpdir(), 'clearbatch-test-')), temporary: true })
}

/** Creates a database with the newest schema and no rows, and returns its connection string. */
export async function freshDatabase(): Promise<string> {
  return withAdmin(async (admin, server) => {
    await ensureTemplate(admin, server)
    return createDatabase(admin, server, TEMPLATE)
  })
}

/** Creates a database without any table, and returns its connection string. */
export async function emptyDatabase(): Promise<string> {
  return withAdmin((admin, server) => createDatabase(admin, server, 'template0'))
}

/** The connection string of a login role of the process: what it writes is limited as in production. */
export async function loginOf(url: string, process: Process): Promise<string> {
  return withAdmin(async (admin) => {
    const login = `test_${process}`
    const group = PROCESS_ROLES[process]
    // Roles belong to the whole server: another test file may create this one at the same time.
    await admin.query(`
      do $$ begin
        if not exists (select from pg_roles where rolname = '${login}') then
          create role ${login} login password '${login}' in role ${group};
        end if;
      exception when duplicate_object or unique_violation then null;
      end $$
    `)
    const own = new URL(url)
    own.username = login
    own.password = login
    return own.href
  })
}

/**
 * Drops the databases whose names begin with the prefix. Files that were written a moment ago are deleted several times as fast as at the end of a
 * long run.
 */
export async function dropDatabases(server: string, prefix: string): Promise<void> {
  await connected(server, async (admin) => {
    const { rows } = await admin.query<{ datname: string }>(
      'select datname from pg_database where starts_with(datname, $1)',
      [prefix],
    )
    for (const { datname } of rows) await admin.query(`drop database ${datname} with (force)`)
  })
}

let ownServer: Promise<Postgres> | undefined

/** The server of `npm test`, from the environment. A test file that runs alone starts its own. */
async function serverUrl(): Promise<string> {
  const shared = process.env.TEST_POSTGRES_URL
  if (shared !== undefined) return shared
  ownServer ??= startTestPostgres()
  return (await ownServer).url
}

async function withAdmin(use: (admin: pg.Client, server: string) => Promise<string>): Promise<string> {
  const server = await serverUrl()
  return connected(server, (admin) => use(admin, server))
}

async function connected<Result>(
  server: string,
  use: (admin: pg.Client) => Promise<Result>,
): Promise<Result> {
  const admin = new pg.Client(server)
  await admin.connect()
  try {
    return await use(admin)
  } finally {
    await admin.end()
  }
}

/** Databases of one job of `npm test` share a prefix, by which they are dropped when it ends. */
async function createDatabase(admin: pg.Client, server: string, template: string): Promise<string> {
  const name = `${process.env.TEST_DATABASES ?? 'test_'}${randomBytes(6).toString('hex')}`
  // Half of the processor time of the default, which writes the template through the log.
  await admin.query(`create database ${name} template ${template} strategy file_copy`)
  if (template === TEMPLATE) await admin.query(`alter database ${name} set search_path = public, mirror`)
  return databaseUrl(server, name)
}

async function ensureTemplate(admin: pg.Client, server: string): Promise<void> {
  await admin.query('select pg_advisory_lock($1)', [TEMPLATE_LOCK])
  try {
    const found = await admin.query('select from pg_database where datname = $1', [TEMPLATE])
    if (found.rowCount === 0) await buildTemplate(admin, server)
  } finally {
    await admin.query('select pg_advisory_unlock($1)', [TEMPLATE_LOCK])
  }
}

/** The template has another name until it is complete, so that a failed migration leaves no incomplete template. */
async function buildTemplate(admin: pg.Client, server: string): Promise<void> {
  const unfinished = await createDatabase(admin, server, 'template0')
  const pool = createPool({ url: unfinished, connections: 1, name: 'test template' })
  const db = createDb(pool)
  try {
    await migrate(db)
    await sql.raw(MIRROR_SCHEMA).execute(db)
  } finally {
    await db.destroy()
  }
  await admin.query(`alter database ${new URL(unfinished).pathname.slice(1)} rename to ${TEMPLATE}`)
}

function databaseUrl(server: string, name: string): string {
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

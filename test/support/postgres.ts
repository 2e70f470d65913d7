/** Databases for tests. One server serves the whole run; every test file takes a database of its own. */
import { randomBytes } from 'node:crypto'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { createDb, createPool, migrate } from '../../db/client.ts'
import { type Postgres, startPostgres } from '../../stack/postgres.ts'

const TEMPLATE = 'template_migrated'
/** Any constant: it makes the processes of one run wait for the one that builds the template. */
const TEMPLATE_LOCK = 7_431_001

/** A server that leaves nothing behind, however this process ends. */
export async function startTestPostgres(): Promise<Postgres> {
  return startPostgres({ dir: await mkdtemp(join(tmpdir(), 'clearbatch-test-')), temporary: true })
}

/** The connection string of a new database with the newest schema and no rows. */
export async function freshDatabase(): Promise<string> {
  return withAdmin(async (admin, server) => {
    await ensureTemplate(admin, server)
    return createDatabase(admin, server, TEMPLATE)
  })
}

/** The connection string of a new database with nothing in it. */
export async function emptyDatabase(): Promise<string> {
  return withAdmin((admin, server) => createDatabase(admin, server, 'template0'))
}

let ownServer: Promise<Postgres> | undefined

/** `npm test` names its server in the environment; a file that runs alone starts one. */
async function serverUrl(): Promise<string> {
  const shared = process.env.TEST_POSTGRES_URL
  if (shared !== undefined) return shared
  ownServer ??= startTestPostgres()
  return (await ownServer).url
}

async function withAdmin(use: (admin: pg.Client, server: string) => Promise<string>): Promise<string> {
  const server = await serverUrl()
  const admin = new pg.Client(server)
  await admin.connect()
  try {
    return await use(admin, server)
  } finally {
    await admin.end()
  }
}

async function createDatabase(admin: pg.Client, server: string, template: string): Promise<string> {
  const name = `test_${randomBytes(6).toString('hex')}`
  await admin.query(`create database ${name} template ${template}`)
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

/** Under another name until it is complete, so that a failed migration leaves no half template behind. */
async function buildTemplate(admin: pg.Client, server: string): Promise<void> {
  const unfinished = await createDatabase(admin, server, 'template0')
  const pool = createPool({ url: unfinished, connections: 1, name: 'test template' })
  const db = createDb(pool)
  try {
    await migrate(db)
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

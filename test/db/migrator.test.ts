/** Migrating is a command of its own; a process refuses a database whose schema is not the one that it needs. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { type Kysely, sql } from 'kysely'
import { type Migration, NO_MIGRATIONS } from 'kysely/migration'
import { after, before, describe, it } from 'mocha'
import pg from 'pg'
import {
  checkSchema,
  createMigrator,
  MIGRATIONS,
  migrate,
  NEWEST,
  neededOf,
  newestMigration,
} from '../../db/migrator.ts'
import { ROLES } from '../../keeper/engine/link/messages.ts'
import type { Postgres } from '../../stack/postgres.ts'
import { connect, type TestDatabase } from '../indexer/support/database.ts'
import { emptyDatabase, startTestPostgres } from '../support/postgres.ts'

const PREVIOUS = Object.keys(MIGRATIONS).at(-2) as string

const ENV = {
  CHAIN_ID: '6343',
  RPC_URL: 'http://127.0.0.1:1',
  ADDRESS_USDM: `0x${'aa'.repeat(20)}`,
  ADDRESS_MARGIN_BANK: `0x${'bb'.repeat(20)}`,
  ADDRESS_ACCOUNT_MANAGER: `0x${'cc'.repeat(20)}`,
  ADDRESS_FORWARDER: `0x${'dd'.repeat(20)}`,
  RELAYER_KEYS: '{}',
  ENGINE_URL: '/nowhere/engine',
  ENGINE_KEYS_FILE: 'test/support/engine-keys.json',
  PORT: '0',
  INTERNAL_PORT: '0',
}

async function run(command: readonly string[], url: string): Promise<{ code: unknown; output: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'engine-keys-'))
  const keysFile = join(folder, 'keys.json')
  writeFileSync(keysFile, JSON.stringify(Object.fromEntries(ROLES.map((role) => [role, 'ab'.repeat(32)]))))
  const engine = { ENGINE_URL: '/nowhere', ENGINE_KEYS_FILE: keysFile }
  const env = { PATH: process.env.PATH, ...ENV, ...engine, DATABASE_URL: url }
  const child = spawn(process.execPath, command, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += String(data)))
  const [code] = await once(child, 'close')
  rmSync(folder, { recursive: true })
  return { code, output }
}

const messageOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'no error',
    (error: Error) => error.message,
  )

it('every migration of the folder is registered, in the order of its number', () => {
  const files = readdirSync('db/migrations').map((file) => file.replace(/\.ts$/, ''))
  expect(Object.keys(MIGRATIONS)).to.deep.equal(files.toSorted())
})

describe('the schema of the database', function () {
  this.timeout(60_000)
  let test: TestDatabase
  before(async () => {
    test = connect(await emptyDatabase())
  })
  after(() => test.close())

  it('when the database is empty, a process refuses and names the schema it needs and the command', async () => {
    const message = await messageOf(checkSchema(test.db))
    expect(message)
      .to.include('has schema none')
      .and.to.include(`needs ${NEWEST}`)
      .and.to.include('npm run cb -- db migrate')
  })

  for (const process of ['api', 'keeper', 'indexer']) {
    it(`when the schema is not the newest, the ${process} exits with 1 and names the command`, async () => {
      const { code, output } = await run([`${process}/main.ts`], test.url)
      expect(code).to.equal(1)
      expect(output).to.include(`needs ${NEWEST}`).and.to.include('npm run cb -- db migrate')
    })
  }

  it('when the database has the previous schema, a process refuses and names both', async () => {
    await createMigrator(test.db).migrateTo(PREVIOUS)
    expect(await messageOf(checkSchema(test.db)))
      .to.include(`has schema ${PREVIOUS}`)
      .and.to.include(`needs ${NEWEST}`)
  })

  it('when the migrate command has run, a process accepts the database', async () => {
    expect(await run(['cli/main.ts', 'db', 'migrate'], test.url)).to.deep.equal({
      code: 0,
      output: `the database has schema ${NEWEST}\n`,
    })
    await checkSchema(test.db)
  })

  it('when a later version has expanded the schema, a process accepts the database', async () => {
    await sql`insert into kysely_migration values ('9998-later', '2100-01-01')`.execute(test.db)
    await checkSchema(test.db)
  })

  it('when a contract step excludes the version, a process refuses and asks for a newer version', async () => {
    await sql`insert into kysely_migration values ('9999-contract-9998-later', '2100-01-01')`.execute(test.db)
    expect(await messageOf(checkSchema(test.db)))
      .to.include('has schema 9999-contract-9998-later')
      .and.to.include(`has only ${NEWEST}`)
      .and.to.include('start a version of the process')
  })

  it('when a contract step excludes only earlier versions, a process accepts the database', async () => {
    const needed = NEWEST.slice(0, 4)
    await sql`update kysely_migration set name = ${`9999-contract-${needed}-later`} where name like '9999%'`.execute(
      test.db,
    )
    await checkSchema(test.db)
  })

  it('when the database is of a version before the first release, process and migrate command refuse and name --fresh', async () => {
    const old = connect(await emptyDatabase())
    await sql`
      create table kysely_migration (name text primary key, timestamp text not null);
      insert into kysely_migration values ('0096-restored-databases', '2026-01-01')
    `.execute(old.db)
    expect(await messageOf(checkSchema(old.db)))
      .to.include('has schema 0096-restored-databases')
      .and.to.include('npm start -- --fresh')
    const { code, output } = await run(['cli/main.ts', 'db', 'migrate'], old.url)
    expect(code).to.equal(1)
    expect(output).to.include('npm start -- --fresh')
    const { rows } =
      await sql`select count(*)::int as count from pg_tables where schemaname = 'public'`.execute(old.db)
    expect(rows).to.deep.equal([{ count: 1 }])
    await old.close()
  })

  it('when DATABASE_URL is missing, the migrate command exits with 1 and names the variable', async () => {
    const { code, output } = await run(['cli/main.ts', 'db', 'migrate'], '')
    expect(code).to.equal(1)
    expect(output).to.include('DATABASE_URL')
  })
})

describe('a migration of a database that processes use', function () {
  this.timeout(60_000)
  const step = (name: string) => ({
    up: async (db: Kysely<never>) => {
      await sql`create table ${sql.table(name)} (id integer)`.execute(db)
    },
    down: async (db: Kysely<never>) => {
      await sql`drop table ${sql.table(name)}`.execute(db)
    },
  })
  const later: Record<string, Migration> = {
    ...MIGRATIONS,
    '9001-grows': step('grown'),
    '9002-contract-9001-shrinks': step('shrunk'),
    '9003-grows': step('grown_later'),
  }
  let test: TestDatabase
  before(async () => {
    test = connect(await emptyDatabase())
  })
  after(() => test.close())

  it('when steps contract, it stops before the first of them and names them', async () => {
    await migrate(test.db, { isContracted: false })
    const waiting = await migrate(test.db, { isContracted: false, migrations: later })
    expect(waiting).to.deep.equal(['9002-contract-9001-shrinks', '9003-grows'])
    expect(await newestMigration(test.db)).to.equal('9001-grows')
    expect(await migrate(test.db, { isContracted: false, migrations: later })).to.deep.equal(waiting)
    await checkSchema(test.db)
  })

  it('when a statement holds a lock, it retries until the lock is free', async () => {
    const client = new pg.Client(test.url)
    await client.connect()
    await client.query('begin; lock table grown')
    const url = new URL(test.url)
    url.searchParams.set('options', '-c lock_timeout=100')
    const bounded = connect(url.href)
    const locking: Record<string, Migration> = {
      ...later,
      '9004-column': {
        up: async (db: Kysely<never>) => {
          await sql`set local lock_timeout = '100ms'; alter table grown add column more integer`.execute(db)
        },
      },
    }
    const migrated = migrate(bounded.db, { migrations: locking })
    await sleep(500)
    await client.query('commit')
    expect(await migrated).to.deep.equal([])
    expect(await newestMigration(test.db)).to.equal('9004-column')
    await bounded.close()
    await client.end()
  })

  it('when the version has contract steps, it needs the migration before them, unless a step excludes that', () => {
    expect(neededOf(['0100-a', '0101-b', '0102-contract-0101-c'])).to.equal('0101-b')
    expect(neededOf(['0100-a', '0101-contract-0101-b'])).to.equal('0101-contract-0101-b')
  })
})

describe('the migrations on a managed server, whose owner may create roles and is no superuser', function () {
  this.timeout(120_000)
  let server: Postgres
  let test: TestDatabase
  let admin: pg.Client

  before(async () => {
    server = await startTestPostgres()
    admin = new pg.Client(server.url)
    await admin.connect()
    await admin.query("create role managed login createrole password 'managed'")
    await admin.query('create database managed owner managed')
    const url = new URL(server.url)
    url.username = 'managed'
    url.password = 'managed'
    url.pathname = '/managed'
    test = connect(url.href)
  })
  after(async () => {
    await test.close()
    await admin.end()
    await server.stop()
  })

  const roles = async (): Promise<string[]> => {
    const { rows } = await admin.query(
      "select rolname from pg_roles where rolname like 'clearbatch\\_%' order by 1",
    )
    return rows.map(({ rolname }) => rolname)
  }

  it('when all are applied, the roles exist and the keeper owns the schema of its queue', async () => {
    await migrate(test.db)
    expect(await roles()).to.deep.equal([
      'clearbatch_api',
      'clearbatch_engine',
      'clearbatch_indexer',
      'clearbatch_keeper',
    ])
    const { rows } =
      await sql`select nspowner::regrole::text as owner from pg_namespace where nspname = 'bullmq'`.execute(
        test.db,
      )
    expect(rows).to.deep.equal([{ owner: 'clearbatch_keeper' }])
  })

  it('when all are taken back, the roles are dropped, and they can be applied again', async () => {
    const { error } = await createMigrator(test.db).migrateTo(NO_MIGRATIONS)
    expect(error).to.equal(undefined)
    expect(await roles()).to.deep.equal([])
    await migrate(test.db)
    expect(await roles()).to.have.length(4)
  })

  it('when another database of the server uses the roles, taking the migration back keeps them', async () => {
    await admin.query('create database other owner managed')
    const url = new URL(test.url)
    url.pathname = '/other'
    const other = connect(url.href)
    await migrate(other.db)
    await other.close()
    const { error } = await createMigrator(test.db).migrateTo(NO_MIGRATIONS)
    expect(error).to.equal(undefined)
    expect(await roles()).to.have.length(4)
    await migrate(test.db)
    await checkSchema(test.db)
  })
})

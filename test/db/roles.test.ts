/** Postgres enforces db/grants.ts: what a process may write, and that everything else is refused. */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import pg from 'pg'
import { PROCESS_ROLES, type Process, READERS, type Rights, WRITERS } from '../../db/grants.ts'
import type { Database } from '../../db/schema.ts'
import { freshDatabase, loginOf } from '../support/postgres.ts'

const NOT_PERMITTED = '42501'
/** Of statements that would write a view or truncate it. */
const READ_ONLY = ['55000', '42809']
const PROCESSES = Object.keys(PROCESS_ROLES) as Process[]
const NAMES = Object.keys(WRITERS) as (keyof Database)[]
/** Views of a union: Postgres writes to them for no role at all. */
const VIEWS: readonly string[] = ['read.order_events', 'read.account_transactions']
const TABLES = NAMES.filter((name) => !VIEWS.includes(name))

interface Attempt {
  readonly right: string
  readonly statement: string
  readonly isGranted: boolean
}

const includes = (columns: Rights['insert'], column: string): boolean =>
  columns === 'all' || columns?.includes(column) === true

/** One statement per right; none of them changes a row. */
function attemptsOn(table: string, columns: readonly string[], rights: Rights): Attempt[] {
  return [
    ...columns.flatMap((column) => [
      {
        right: `insert ${table}.${column}`,
        statement: `insert into ${table} (${column}) overriding system value select null where false`,
        isGranted: includes(rights.insert, column),
      },
      {
        right: `update ${table}.${column}`,
        statement: `update ${table} set ${column} = default where false`,
        isGranted: includes(rights.update, column),
      },
    ]),
    {
      right: `delete ${table}`,
      statement: `delete from ${table} where false`,
      isGranted: rights.delete === true,
    },
    { right: `truncate ${table}`, statement: `truncate ${table}`, isGranted: rights.truncate === true },
  ]
}

describe('a database role per process', () => {
  let url: string
  let owner: pg.Client
  const columnsOf = new Map<string, string[]>()
  const logins = new Map<Process, pg.Client>()

  before(async () => {
    url = await freshDatabase()
    owner = new pg.Client(url)
    await owner.connect()
    for (const process of PROCESSES) {
      const login = new pg.Client(await loginOf(url, process))
      await login.connect()
      logins.set(process, login)
    }
    const { rows } = await owner.query(`
      select case table_schema when 'read' then 'read.' else '' end || table_name as name, array_agg(column_name::text) as columns
      from information_schema.columns where table_schema in ('public', 'read') and table_name not like 'kysely%' and is_generated = 'NEVER' group by 1
    `)
    for (const { name, columns } of rows) columnsOf.set(name, columns)
  })
  after(async () => {
    for (const client of [owner, ...logins.values()]) await client.end()
  })

  /** Null if the statement is permitted. Rolled back in any case. */
  async function refusalOf(client: pg.Client, statement: string): Promise<string | null> {
    await client.query('begin')
    try {
      await client.query(statement)
      return null
    } catch (error) {
      const { code = '' } = error as { code?: string }
      return code === NOT_PERMITTED || READ_ONLY.includes(code) ? NOT_PERMITTED : null
    } finally {
      await client.query('rollback')
    }
  }

  it('when db/grants.ts is compared with the schema, it names every table', () => {
    expect([...columnsOf.keys()].sort()).to.deep.equal([...NAMES].sort())
  })

  for (const process of PROCESSES) {
    it(`when the ${process} writes any column of any table, Postgres permits exactly what db/grants.ts grants`, async () => {
      const wrong: string[] = []
      for (const table of TABLES) {
        const rights = WRITERS[table][process] ?? {}
        for (const { right, statement, isGranted } of attemptsOn(table, columnsOf.get(table) ?? [], rights)) {
          const refusal = await refusalOf(logins.get(process) as pg.Client, statement)
          if ((refusal === null) !== isGranted) wrong.push(`${right}: ${refusal ?? 'permitted'}`)
        }
      }
      expect(wrong).to.deep.equal([])
    }).timeout(60_000)
  }

  for (const process of PROCESSES) {
    it(`when the ${process} reads any table, Postgres permits exactly what db/grants.ts lists`, async () => {
      const { rows } = await owner.query(
        "select name from unnest($1::text[]) name where has_any_column_privilege($2, name, 'select')",
        [NAMES, PROCESS_ROLES[process]],
      )
      expect(rows.map(({ name }) => name)).to.have.members([...READERS[process]])
    })
  }

  it('when the indexer reads the bytes of a stored transaction, Postgres refuses', async () => {
    const indexer = logins.get('indexer') as pg.Client
    expect(await refusalOf(indexer, 'select tx_hash, relayer, nonce from relayer_transactions')).to.equal(
      null,
    )
    expect(await refusalOf(indexer, 'select raw from relayer_transactions')).to.equal(NOT_PERMITTED)
  })

  it('when a process tries to change the schema or another role, Postgres refuses', async () => {
    for (const login of logins.values()) {
      for (const statement of [
        'create table stray (id integer)',
        'alter table orders add column stray integer',
        'drop table orders',
        'create schema stray',
        'grant clearbatch_keeper to clearbatch_api',
      ]) {
        expect(await refusalOf(login, statement), statement).to.equal(NOT_PERMITTED)
      }
    }
  })

  it('when only the keeper may use the schema of its queue, other processes are refused', async () => {
    for (const process of PROCESSES) {
      const refusal = await refusalOf(
        logins.get(process) as pg.Client,
        'create table bullmq.probe (id integer)',
      )
      expect(refusal, process).to.equal(process === 'keeper' ? null : NOT_PERMITTED)
    }
  })

  it('when the comments of the schema name the writers of a table, they agree with db/grants.ts', () => {
    const files = [
      'schema',
      'market-schema',
      'chain-schema',
      'price-schema',
      'liquidation-schema',
      'adjustment-schema',
      'relay-schema',
      'relayer-schema',
      'lease-schema',
      'engine-schema',
      'credentials-schema',
      'history-schema',
    ]
    const source = files
      .map((name) => `db/${name}.ts`)
      .map((path) => readFileSync(path, 'utf8'))
      .join('\n')
    const interfaces = new Map(
      [...source.matchAll(/^ {2}(\w+): (\w+Table)$/gm)].map((match) => [match[1], match[2]]),
    )
    for (const table of TABLES.filter((name) => !name.startsWith('read.'))) {
      const writers = PROCESSES.filter((process) => WRITERS[table][process] !== undefined)
      const comment = source.match(
        new RegExp(`Written by:([^.]*)\\.[^/]*/\\nexport interface ${interfaces.get(table)} `),
      )
      const named = PROCESSES.filter((process) => comment?.[1]?.includes(process))
      expect(named, table).to.deep.equal(writers)
      expect(comment, table).to.not.equal(null)
    }
  })
})

/** The engine's journal and lease on Postgres. */
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import pg from 'pg'
import { createPool } from '../../../db/client.ts'
import { APPEND, failureOf } from '../../../db/engine-journal.ts'
import { AppendUnknown } from '../../../keeper/engine/ports.ts'
import { createJournal, createLease } from '../../../keeper/engine/store.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { type JournalFixture, journalCases } from './journal-cases.ts'

const GROUP = { number: 1, token: 1, version: 1, rows: [], before: 'b', digest: 'd' }

describe('the engine’s journal on Postgres', () => {
  const pools: pg.Pool[] = []
  const openPool = async (url: string): Promise<pg.Pool> => {
    const pool = createPool({ url, connections: 4, name: 'engine-test' })
    pools.push(pool)
    return pool
  }

  /** Rows of the product are valid JSON, which the column accepts: the test adds a check that one kind of row violates. */
  async function rejectPoison(url: string): Promise<void> {
    const owner = new pg.Client(url)
    await owner.connect()
    await owner.query(`alter table engine_groups add check (rows::text not like '%poison%')`)
    await owner.end()
  }

  async function open(): Promise<JournalFixture & { readonly url: string }> {
    const url = await freshDatabase()
    await rejectPoison(url)
    const pool = await openPool(url)
    const parts = { journal: createJournal(pool), lease: createLease(pool) }
    return { ...parts, url, until: (work) => work, poison: { poison: true } }
  }

  /** Servers before Postgres 17 cannot bound the time of a transaction. */
  async function boundsTransactions(url: string): Promise<boolean> {
    const { rows } = await (await openPool(url)).query<{ major: number }>(
      `select current_setting('server_version_num')::int / 10000 as major`,
    )
    return (rows[0]?.major ?? 0) >= 17
  }

  afterEach(async () => {
    for (const pool of pools.splice(0)) await pool.end()
  })

  journalCases(open)

  it('when a takeover has changed the token and not committed, an append of the former owner waits and stores nothing', async () => {
    const { url, journal, lease } = await open()
    const token = (await lease.take(await lease.read())) as number
    const other = new pg.Client(url)
    await other.connect()
    try {
      await other.query('begin')
      await other.query('update engine_ownership set token = token + 1')
      const appended = journal.append({ ...GROUP, token })
      await other.query('commit')
      expect(await appended).to.equal(false)
    } finally {
      await other.end()
    }
  })

  it('when an owner is frozen before it has sent the end of its append, another member takes the lease, and nothing is stored', async function () {
    const { url, lease } = await open()
    if (!(await boundsTransactions(url))) this.skip()
    const token = (await lease.take(await lease.read())) as number
    const pool = await openPool(url)
    const client = await pool.connect()
    client.on('error', () => {})
    try {
      // As of an append, without the Sync behind it.
      const { connection } = client as unknown as { readonly connection: pg.Connection }
      connection.parse({ text: APPEND, name: '', types: [] }, false)
      connection.bind({ values: ['1', String(token), '1', '[]', 'b', 'd'] }, false)
      connection.execute({}, false)
      ;(connection as unknown as { flush(): void }).flush()
      const held = async (): Promise<boolean> =>
        (await pool.query(`select from pg_locks where relation = 'engine_groups'::regclass`)).rows.length > 0
      while (!(await held()));
      expect(await lease.take(await lease.read())).to.equal(token + 1)
      expect((await pool.query('select from engine_groups')).rows).to.deep.equal([])
    } finally {
      client.release(true)
    }
  })

  it('when the connection ends during an append, the outcome is unknown', async () => {
    const { url, journal, lease } = await open()
    const token = (await lease.take(await lease.read())) as number
    const other = new pg.Client(url)
    await other.connect()
    try {
      await other.query('begin')
      await other.query('update engine_ownership set token = token')
      const appended = journal.append({ ...GROUP, token }).catch((error: unknown) => error)
      const waiting = `select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
      let pids: { pid: number }[] = []
      while (pids.length === 0) pids = (await other.query(waiting)).rows
      await other.query('select pg_terminate_backend($1)', [pids[0]?.pid])
      expect(await appended).to.be.instanceOf(AppendUnknown)
    } finally {
      await other.query('rollback')
      await other.end()
    }
  })

  it('given an error of the server, it says whether the content, the server or nothing is known to be the cause', () => {
    const of = (severity: string, code: string): string => {
      const error = new pg.DatabaseError('', 0, 'error')
      return failureOf(Object.assign(error, { severity, code }))
    }
    expect(of('ERROR', '22P05')).to.equal('content')
    expect(of('ERROR', '54000')).to.equal('content')
    expect(of('ERROR', '53100')).to.equal('unavailable')
    expect(of('ERROR', '25006')).to.equal('unavailable')
    expect(of('FATAL', '57P01')).to.equal('unknown')
    expect(failureOf(new Error('Connection terminated'))).to.equal('unknown')
  })
})

/** Connections read values without loss and recover after they break. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { createDb, createPool } from '../../db/client.ts'
import { freshDatabase, type TestDatabase } from '../indexer/support/database.ts'

describe('the database client', () => {
  let test: TestDatabase
  before(async () => {
    test = await freshDatabase()
  })
  after(() => test.close())

  it('when a row has wei and counts, they are read as bigint and number', async () => {
    const { rows } =
      await sql`select 123456789012345678901234567890::numeric as wei, 9007199254740991::bigint as count`.execute(
        test.db,
      )
    expect(rows).to.deep.equal([{ wei: 123456789012345678901234567890n, count: 9007199254740991 }])
  })

  it('when a count is beyond the safe integers, reading it fails instead of rounding', async () => {
    const read = await sql`select 9007199254740993::bigint as count`
      .execute(test.db)
      .catch((error: Error) => error)
    expect(read).to.be.instanceOf(Error)
    expect((read as Error).message).to.include('9007199254740993')
  })

  it('when a statement looks expensive, Postgres does not compile it', async () => {
    const { rows } = await sql`show jit`.execute(test.db)
    expect(rows).to.deep.equal([{ jit: 'off' }])
  })

  it('when a connection breaks inside a transaction, that transaction fails and the next one succeeds', async () => {
    const failure = await test.db
      .transaction()
      .execute(async (tx) => {
        const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx)
        await sql`select pg_terminate_backend(${rows[0]?.pid})`.execute(test.db)
        // The client learns of the broken connection only at its next query.
        await new Promise((resolve) => setTimeout(resolve, 50))
        await sql`select 1`.execute(tx)
      })
      .catch((error: Error) => error)
    expect(failure).to.be.instanceOf(Error)
    const { rows } = await sql`select 1 as one`.execute(test.db)
    expect(rows).to.deep.equal([{ one: 1 }])
  })

  it('when a process stops within a transaction, the server ends it, and its lock is free', async () => {
    const stopped = createDb(createPool({ url: test.url, connections: 1, name: 'stopped' }))
    const ended = stopped.transaction().execute(async (tx) => {
      await sql`select pg_advisory_xact_lock(7)`.execute(tx)
      // Without a bound of the server this waits for the end of the transaction, which waits for this.
      await test.db.transaction().execute((other) => sql`select pg_advisory_xact_lock(7)`.execute(other))
      await sql`select 1`.execute(tx)
    })
    const failure = await ended.catch((error: Error) => error)
    expect(failure).to.be.instanceOf(Error)
    await stopped.destroy()
  })

  it('when a connection is over TCP, the server gives up a client that does not receive', async () => {
    const url = new URL(test.url)
    url.searchParams.delete('host')
    const db = createDb(createPool({ url: url.href, connections: 1, name: 'tcp' }))
    const { rows } = await sql<{ name: string; setting: string }>`
      select name, setting from pg_settings where name like 'tcp_%' order by name
    `.execute(db)
    expect(rows.map(({ setting }) => setting)).to.deep.equal(['3', '2', '1', '4000'])
    await db.destroy()
  })
})

/** A pipelined client sends begin and commit with other statements; its transactions are as atomic as any. */
import { expect } from 'chai'
import { CompiledQuery, sql } from 'kysely'
import { after, afterEach, before, describe, it } from 'mocha'
import { createDb, createPool, type Db } from '../../db/client.ts'
import { committing, TransactionClient } from '../../db/transaction-client.ts'
import { freshDatabase, type TestDatabase } from '../indexer/support/database.ts'

describe('transactions of a pipelined client', () => {
  let test: TestDatabase
  let db: Db
  before(async () => {
    test = await freshDatabase()
    await sql`create table numbers (n integer primary key)`.execute(test.db)
    const options = { url: test.url, connections: 1, name: 'pipelined', idleInTransactionMs: 0 }
    db = createDb(createPool({ ...options, Client: TransactionClient }))
  })
  after(async () => {
    await db.destroy()
    await test.close()
  })
  afterEach(() => sql`truncate numbers`.execute(test.db))

  const numbers = async (): Promise<number[]> => {
    const { rows } = await sql<{ n: number }>`select n from numbers order by n`.execute(test.db)
    return rows.map(({ n }) => n)
  }
  const add = (n: number) => CompiledQuery.raw('insert into numbers values ($1)', [n])
  const addLast = (n: number) => CompiledQuery.raw(committing('insert into numbers values ($1)'), [n])
  const errorOf = (result: Promise<unknown>): Promise<Error | null> =>
    result.then(
      () => null,
      (error: Error) => error,
    )

  it('when no statement is marked, the transaction commits at its end', async () => {
    await db.transaction().execute(async (tx) => {
      await tx.executeQuery(add(1))
      expect(await numbers(), 'not committed yet').to.deep.equal([])
      await tx.executeQuery(add(2))
    })
    expect(await numbers()).to.deep.equal([1, 2])
  })

  it('when the last statement is marked, it has committed once it resolves', async () => {
    await db.transaction().execute(async (tx) => {
      await tx.executeQuery(add(1))
      await tx.executeQuery(addLast(2))
      expect(await numbers()).to.deep.equal([1, 2])
    })
    expect(await numbers()).to.deep.equal([1, 2])
  })

  it('when the only statement is marked, nothing else is needed', async () => {
    await db.transaction().execute((tx) => tx.executeQuery(addLast(1)))
    expect(await numbers()).to.deep.equal([1])
  })

  it('when a statement fails, marked or not, nothing is stored and its error is thrown', async () => {
    await sql`insert into numbers values (7)`.execute(test.db)
    for (const failing of [add(7), addLast(7)]) {
      const error = await errorOf(
        db.transaction().execute(async (tx) => {
          await tx.executeQuery(add(1))
          await tx.executeQuery(failing)
        }),
      )
      expect(error?.message).to.match(/duplicate key/)
      expect(await numbers()).to.deep.equal([7])
    }
  })

  it('when statements run together and one fails, nothing is stored', async () => {
    await sql`insert into numbers values (7)`.execute(test.db)
    const error = await errorOf(
      db.transaction().execute(async (tx) => {
        const settled = await Promise.allSettled(
          [add(1), add(7), add(2)].map((each) => tx.executeQuery(each)),
        )
        for (const each of settled) if (each.status === 'rejected') throw each.reason
      }),
    )
    expect(error?.message).to.match(/duplicate key/)
    expect(await numbers()).to.deep.equal([7])
  })

  it('when the caller fails before the marked statement, nothing is stored, and the connection serves the next transaction', async () => {
    for (const n of [1, 2, 3]) {
      const error = await errorOf(
        db.transaction().execute(async (tx) => {
          await tx.executeQuery(add(n))
          throw new Error('changed its mind')
        }),
      )
      expect(error?.message).to.equal('changed its mind')
      await db.transaction().execute((tx) => tx.executeQuery(addLast(10 + n)))
    }
    expect(await numbers()).to.deep.equal([11, 12, 13])
  })

  it('when the connection ends during the transaction, its error is thrown and nothing is stored', async () => {
    const error = await errorOf(
      db.transaction().execute(async (tx) => {
        const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx)
        await tx.executeQuery(add(1))
        await sql`select pg_terminate_backend(${rows[0]?.pid})`.execute(test.db)
        await tx.executeQuery(addLast(2))
      }),
    )
    expect(error).to.be.instanceOf(Error)
    expect(await numbers()).to.deep.equal([])
    await db.transaction().execute((tx) => tx.executeQuery(addLast(3)))
    expect(await numbers()).to.deep.equal([3])
  })

  it('when the transaction has failed already, a marked statement stores nothing', async () => {
    const error = await errorOf(
      db.connection().execute(async (connection) => {
        await connection.executeQuery(CompiledQuery.raw('begin'))
        await connection.executeQuery(CompiledQuery.raw('select 1 / 0')).catch(() => {})
        await connection.executeQuery(addLast(1))
      }),
    )
    expect(error?.message).to.match(/current transaction is aborted/)
    expect(await numbers()).to.deep.equal([])
  })
})

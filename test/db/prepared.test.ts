/** Frequent statements are prepared, and prepared again after a change of the schema. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { createDb, createPool, type Db, type Tx } from '../../db/client.ts'
import { isOutdatedPlan } from '../../db/prepared.ts'
import { freshDatabase, type TestDatabase } from '../indexer/support/database.ts'

describe('frequent statements', () => {
  let test: TestDatabase
  before(async () => {
    test = await freshDatabase()
    await sql`create table pairs (id integer, value text); insert into pairs values (1, 'one'), (2, 'two')`.execute(
      test.db,
    )
  })
  after(() => test.close())

  const onOneConnection = async <Result>(
    work: (db: ReturnType<typeof createDb>) => Promise<Result>,
  ): Promise<Result> => {
    const db = createDb(createPool({ url: test.url, connections: 1, name: 'prepared' }))
    try {
      return await work(db)
    } finally {
      await db.destroy()
    }
  }

  it('when a statement is frequent, it is prepared and returns the result of its values each time', () =>
    onOneConnection(async (db) => {
      const seen: string[] = []
      for (const id of [1, 2, 1, 2, 1, 2]) {
        const { rows } = await sql<{ value: string }>`select value from pairs where id = ${id}`.execute(db)
        seen.push(rows[0]?.value as string)
      }
      expect(seen).to.deep.equal(['one', 'two', 'one', 'two', 'one', 'two'])
      const { rows } = await sql<{ statement: string }>`select statement from pg_prepared_statements`.execute(
        db,
      )
      expect(rows.map(({ statement }) => statement)).to.include('select value from pairs where id = $1')
    }))

  it('when texts differ only by the length of a list, none of them is prepared', () =>
    onOneConnection(async (db) => {
      for (let length = 1; length <= 300; length++) {
        const list = sql.join(Array.from({ length }, (_, id) => id))
        await sql`select value from pairs where id in (${list})`.execute(db)
      }
      const { rows } = await sql<{ count: number }>`
        select count(*) as count from pg_prepared_statements where statement like '%pairs where id in%'
      `.execute(db)
      expect(rows).to.deep.equal([{ count: 0 }])
    }))

  const read = (db: Db | Tx) =>
    sql<object>`select * from pairs where id = ${1}`.execute(db).then(({ rows }) => rows)

  it('when its table gets a column, a prepared statement returns the column', () =>
    onOneConnection(async (db) => {
      for (let time = 0; time < 5; time++) expect(await read(db)).to.deep.equal([{ id: 1, value: 'one' }])
      await sql`alter table pairs add column more integer default 7`.execute(test.db)
      expect(await read(db)).to.deep.equal([{ id: 1, value: 'one', more: 7 }])
    }))

  it('when its table gets a column, a transaction with a prepared statement fails at most once', () =>
    onOneConnection(async (db) => {
      const within = () => db.transaction().execute(read)
      for (let time = 0; time < 5; time++) await within()
      await sql`alter table pairs add column most integer default 8`.execute(test.db)
      const first = await within().catch((error: Error) => error)
      expect(isOutdatedPlan(first)).to.equal(true)
      expect(await within()).to.deep.equal([{ id: 1, value: 'one', more: 7, most: 8 }])
    }))
})

/** Statements that are asked often, and what they cost when the schema changes under them. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { createDb, createPool } from '../../db/client.ts'
import { isOutdatedPlan } from '../../db/prepared.ts'
import { freshDatabase, type TestDatabase } from '../indexer/support/database.ts'

describe('a statement that comes often', () => {
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

  it('is prepared, and answers with its values of each time', () =>
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

  it('given lists of many lengths, only what comes again is prepared', () =>
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

  it('given another column in its table, it fails once at the most and then shows it', () =>
    onOneConnection(async (db) => {
      const read = () => sql<object>`select * from pairs where id = ${1}`.execute(db).then(({ rows }) => rows)
      for (let time = 0; time < 5; time++) expect(await read()).to.deep.equal([{ id: 1, value: 'one' }])
      await sql`alter table pairs add column more integer default 7`.execute(test.db)
      const first = await read().catch((error: Error) => error)
      expect(first).to.be.instanceOf(Error)
      expect(isOutdatedPlan(first)).to.equal(true)
      expect(await read()).to.deep.equal([{ id: 1, value: 'one', more: 7 }])
    }))
})

import { expect } from 'chai'
import pg from 'pg'
import { emptyDatabase, freshDatabase } from './postgres.ts'

describe('test/support/postgres', () => {
  it('when a fresh database is requested twice, it returns two databases with the complete schema', async () => {
    const [one, other] = [await freshDatabase(), await freshDatabase()]
    expect(one).to.not.equal(other)
    expect(await countTables(one)).to.be.greaterThan(5)
    expect(await countTables(other)).to.equal(await countTables(one))
  })

  it('when an empty database is requested, it has no tables', async () => {
    expect(await countTables(await emptyDatabase())).to.equal(0)
  })
})

async function countTables(url: string): Promise<number> {
  const client = new pg.Client(url)
  await client.connect()
  const tables = await client.query("select from information_schema.tables where table_schema = 'public'")
  await client.end()
  return tables.rowCount ?? 0
}

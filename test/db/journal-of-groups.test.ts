/** The migration that stores the rows of the journal once: a database with rows keeps them, in both directions. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { readRows } from '../../db/journal.ts'
import { createMigrator } from '../../db/migrator.ts'
import { freshDatabase, type TestDatabase } from '../indexer/support/database.ts'

const placed = (shard: string, seq: number, row: object) => ({ shard, seq, row })
const SPANNED = { kind: 'command_spanned', user_id: 1, shards: { m1: 2, m2: 1 }, at: 1 }
const price = (at: number) => ({ kind: 'prices_updated', at })
/** The last group is not in the tables yet. */
const GROUPS = [
  [placed('accounts', 1, { kind: 'user_created', user_id: 1 })],
  [placed('m1', 1, price(1)), placed('m2', 1, price(2)), placed('m1', 2, price(3))],
  [placed('accounts', 2, SPANNED), placed('chain', 1, { kind: 'block_applied' })],
  [placed('m1', 3, price(4))],
]
const WRITTEN = GROUPS.slice(0, -1).flat()

describe('the migration to a journal of groups', () => {
  let test: TestDatabase
  before(async () => {
    test = await freshDatabase()
    await createMigrator(test.db).migrateTo('0101-read-model')
    for (const [index, rows] of GROUPS.entries())
      await sql`
        insert into engine_groups (number, token, version, rows, before, digest)
        values (${index + 1}, 0, 1, ${JSON.stringify(rows)}::json, '', '')
      `.execute(test.db)
    await sql`update engine_tables set written = ${GROUPS.length - 1}`.execute(test.db)
    await sql`alter table journal disable trigger all`.execute(test.db)
    for (const { shard, seq, row } of WRITTEN)
      await sql`insert into journal values (${shard}, ${seq}, ${JSON.stringify(row)}::json)`.execute(test.db)
  })
  after(() => test.close())

  const stored = async () =>
    (await sql`select shard, seq, row from journal order by shard, seq`.execute(test.db)).rows
  const expected = [...WRITTEN].sort((a, b) => a.shard.localeCompare(b.shard) || a.seq - b.seq)

  it('when a database has rows, it keeps those that readers see, finds them by shard, and keeps the bookmarks of commands', async () => {
    const { error } = await createMigrator(test.db).migrateToLatest()
    expect(error).to.equal(undefined)
    expect(await stored()).to.deep.equal(expected)
    for (const shard of ['accounts', 'm1', 'm2', 'chain'])
      for (const from of [0, 1, 2]) {
        const rows = await readRows(test.db, shard, from, 10)
        const own = expected.filter((each) => each.shard === shard && each.seq > from)
        expect(rows, `${shard} behind ${from}`).to.deep.equal(own.map(({ seq, row }) => ({ seq, row })))
      }
    expect(await readRows(test.db, 'm1', 0, 1)).to.deep.equal([{ seq: 1, row: price(1) }])
    const { rows: bookmarks } = await sql`select seq, shards from spanned_commands`.execute(test.db)
    expect(bookmarks).to.deep.equal([{ seq: 2, shards: SPANNED.shards }])
  })

  it('when it is taken back, the table has the same rows', async () => {
    const { error } = await createMigrator(test.db).migrateTo('0101-read-model')
    expect(error).to.equal(undefined)
    expect(await stored()).to.deep.equal(expected)
  })
})

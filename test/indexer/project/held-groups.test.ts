/** Groups of the journal that a projector keeps between its chunks. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, beforeEach, describe, it } from 'mocha'
import type { PlacedRow } from '../../../db/journal.ts'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'
import { HeldGroups } from '../../../indexer/project/held-groups.ts'
import { projectChunk } from '../../../indexer/project/project-chunk.ts'
import { registerShards } from '../../../indexer/project/project-shards.ts'
import { storeGroup } from '../../support/rows/journal.ts'
import { freshDatabase, type TestDatabase } from '../support/database.ts'
import { placed } from '../support/placements.ts'
import { appendToJournal, clearJournal } from '../support/read-model.ts'

const rowsOf = (count: number): PlacedRow[] =>
  Array.from({ length: count }, (_, at) => ({ shard: 'm1', seq: at + 1, row: placed(1, at + 1) }))
const group = (number: number, count: number, digest = 'a') => ({ number, digest, rows: rowsOf(count) })

describe('groups that a projector holds', () => {
  it('when a group was replaced by another one, only the other one is found', () => {
    const held = new HeldGroups()
    held.hold(group(1, 40, 'a'))
    held.hold(group(1, 50, 'b'))
    expect(held.rowsOf({ number: 1, digest: 'a' })).to.equal(undefined)
    expect(held.rowsOf({ number: 1, digest: 'b' })).to.have.length(50)
  })

  it('when a group is small, it is not held, so that statements name few groups', () => {
    const held = new HeldGroups()
    for (let number = 1; number <= 1000; number++) held.hold(group(number, 5))
    expect(held.names()).to.deep.equal([])
  })

  it('when there are too many rows, the groups held first are forgotten, and a larger group is held alone', () => {
    const held = new HeldGroups()
    for (let number = 1; number <= 5; number++) held.hold(group(number, 3000))
    expect(held.names().map(({ number }) => number)).to.deep.equal([3, 4, 5])
    held.hold(group(6, 20_000))
    expect(held.names().map(({ number }) => number)).to.deep.equal([6])
    held.hold(group(7, 32))
    expect(held.names().map(({ number }) => number)).to.deep.equal([7])
  })
})

describe('a projector that holds groups', () => {
  let test: TestDatabase
  before(async () => {
    test = await freshDatabase()
  })
  after(() => test.close())

  beforeEach(async () => {
    await clearJournal(test.db)
    for (const shard of ['m1', 'm2']) await appendToJournal(test.db, shard, [])
    await registerShards(test.db)
  })

  const store = (rows: readonly { shard: string; seq: number; row: JournalRow }[]) =>
    test.db.transaction().execute((tx) => storeGroup(tx, rows))
  const at = (market: number, behind: number, { seq }: PlacedRow): PlacedRow => ({
    shard: `m${market}`,
    seq: behind + seq,
    row: placed(market, behind + seq),
  })
  const orders = async (): Promise<string[]> =>
    (await test.db.selectFrom('read.orders').select('order_id').orderBy('order_id').execute()).map(
      ({ order_id }) => order_id,
    )

  it('when chunks end within groups of several markets, each row is projected once', async () => {
    const seqs = Array.from({ length: 40 }, (_, at) => at + 1)
    const rowAt = (market: number, seq: number) => ({ shard: `m${market}`, seq, row: placed(market, seq) })
    for (const some of [seqs.slice(0, 20), seqs.slice(20)])
      await store([1, 2].flatMap((market) => some.map((seq) => rowAt(market, seq))))
    const options = { limit: 7, killPoint() {}, held: new HeldGroups() }
    for (let rows = 1; rows > 0; ) rows = (await projectChunk(test.db, ['m1', 'm2'], options))?.rows ?? 0
    expect(options.held.names()).to.have.length(2)
    const expected = [1, 2].flatMap((market) => seqs.map((seq) => `${market}-${seq}`))
    expect(await orders()).to.have.members(expected)
  })

  it('when a group that is read fills the bound, a held group behind it is still projected', async () => {
    const large = 10_000
    await store(
      Array.from({ length: large }, (_, at) => ({ shard: 'm1', seq: at + 1, row: placed(1, at + 1) })),
    )
    await store(
      [1, 2].flatMap((market) => rowsOf(40).map((one) => at(market, market === 1 ? large : 0, one))),
    )
    const held = new HeldGroups()
    await projectChunk(test.db, ['m2'], { limit: 1, killPoint() {}, held })
    expect(held.names().map(({ number }) => number)).to.have.length(1)
    const progress = await projectChunk(test.db, ['m1'], { limit: 2 * large, killPoint() {}, held })
    expect(progress?.rows).to.equal(large + 40)
  }).timeout(120_000)

  it('when the database has lost a held group and got another one, the rows are those of the other one', async () => {
    await store(rowsOf(40))
    const options = { limit: 1, killPoint() {}, held: new HeldGroups() }
    await projectChunk(test.db, ['m1'], options)
    expect(options.held.names()).to.have.length(1)
    const other = rowsOf(40).map((one) =>
      one.seq === 2 ? { ...one, row: { ...placed(1, 2), price: 77 } } : one,
    )
    await sql`update engine_groups set rows = ${JSON.stringify(other)}, digest = 'other'`.execute(test.db)
    await projectChunk(test.db, ['m1'], options)
    const { price } = await test.db
      .selectFrom('read.orders')
      .select('price')
      .where('order_id', '=', '1-2')
      .executeTakeFirstOrThrow()
    expect(price).to.equal(77)
  })
})

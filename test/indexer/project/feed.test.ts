/** The feed of the read model: one row per chunk, in the order in which chunks become visible. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, beforeEach, describe, it } from 'mocha'
import { decodeChanges } from '../../../db/feed-changes.ts'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'
import { FEED_AGE_MS } from '../../../indexer/project/feed.ts'
import { fillStep } from '../../../indexer/project/fill.ts'
import { orders } from '../../../indexer/project/orders/projection.ts'
import { projectChunk } from '../../../indexer/project/project-chunk.ts'
import { projectAll, registerShards } from '../../../indexer/project/project-shards.ts'
import type { Projection } from '../../../indexer/project/projection.ts'
import { PROJECTIONS } from '../../../indexer/project/projections.ts'
import { rebuildProjection } from '../../../indexer/project/rebuild.ts'
import { untilLockWait } from '../../api/support/wait.ts'
import { freshDatabase, type TestDatabase } from '../support/database.ts'
import { placed } from '../support/placements.ts'
import { appendToJournal, clearJournal } from '../support/read-model.ts'

const options = { limit: 1, killPoint() {} }

describe('the feed', () => {
  let test: TestDatabase
  before(async () => {
    test = await freshDatabase()
  })
  after(() => test.close())

  /** Two empty markets, projected. */
  beforeEach(async () => {
    await clearJournal(test.db)
    for (const shard of ['m1', 'm2']) await appendToJournal(test.db, shard, [])
    await registerShards(test.db)
    await projectAll(test.db, options)
  })

  const rows = () => test.db.selectFrom('read.feed').selectAll().orderBy('seq').execute()
  const state = () => test.db.selectFrom('read.feed_state').selectAll().executeTakeFirst()

  it('when a chunk changes what readers see, it appends one row that names its topics and the row before of each', async () => {
    await appendToJournal(test.db, 'm1', [placed(1, 1), placed(1, 2)])
    await projectChunk(test.db, ['m1'], options)
    const progress = await projectChunk(test.db, ['m1'], options)
    const [first, second] = await rows()
    expect(progress?.feedSeq).to.equal(second?.seq)
    expect(first?.heads['book 1']).to.equal(0)
    expect(second?.heads['book 1']).to.equal(first?.seq)
    expect(second?.shard_seq).to.equal(2)
    expect(decodeChanges(second?.changes ?? '').orders?.map(({ order_id }) => order_id)).to.deep.equal([
      '1-2',
    ])
  })

  it('when a chunk fails, it leaves no row and no gap', async () => {
    await appendToJournal(test.db, 'm1', [placed(1, 1)])
    const killPoint = () => {
      throw new Error('killed')
    }
    await projectChunk(test.db, ['m1'], { limit: 1, killPoint }).catch(() => {})
    expect(await rows()).to.deep.equal([])
    const before = (await state())?.seq ?? 0
    await projectChunk(test.db, ['m1'], options)
    expect((await rows()).map(({ seq }) => seq)).to.deep.equal([before + 1])
  })

  it('when markets are projected at once, rows are numbered without a gap', async () => {
    for (const id of [1, 2])
      await appendToJournal(
        test.db,
        `m${id}`,
        [1, 2, 3, 4, 5, 6].map((at) => placed(id, at)),
      )
    const before = (await state())?.seq ?? 0
    await Promise.all(
      ['m1', 'm2'].map(async (shard) => {
        for (let at = 0; at < 6; at++) await projectChunk(test.db, [shard], options)
      }),
    )
    expect((await rows()).map(({ seq }) => seq - before)).to.deep.equal(
      Array.from({ length: 12 }, (_, at) => at + 1),
    )
  })

  it('when work follows the statement of a chunk, chunks of other markets append their rows meanwhile', async () => {
    await sql`create table noted (timeout text)`.execute(test.db)
    const work = [
      sql`insert into noted select current_setting('idle_in_transaction_session_timeout')`,
      sql`lock table gate`,
    ]
    const slow: Projection = {
      ...orders,
      project: async (tx, entries) => ({ ...(await orders.project(tx, entries)), after: work }),
    }
    const projections = PROJECTIONS.map((each) => (each.name === orders.name ? slow : each))
    await appendToJournal(test.db, 'm1', [placed(1, 1)])
    await appendToJournal(test.db, 'm2', [
      { kind: 'market_listed', spec: { symbol: 'OTHER', kind: 'perpetual' } as never },
    ])
    await sql`create table gate ()`.execute(test.db)
    let waiting: ReturnType<typeof projectChunk> | undefined
    const other = await test.db.transaction().execute(async (tx) => {
      await sql`lock table gate`.execute(tx)
      waiting = projectChunk(test.db, ['m1'], { ...options, projections })
      await untilLockWait(test.db)
      return projectChunk(test.db, ['m2'], options)
    })
    const seq = (await waiting)?.feedSeq as number
    expect(other?.feedSeq).to.equal(seq - 1)
    const noted = await sql<{ timeout: string }>`select timeout from noted`.execute(test.db)
    expect(noted.rows, 'a projector that stops then is cut off').to.deep.equal([{ timeout: '5s' }])
    const row = (await rows()).find((each) => each.seq === seq)
    expect(row?.levels).to.have.length(1)
    expect(row?.balances).to.have.length(1)
    expect(row?.heads).to.have.property('book 1')
  })

  it('when a chunk would end within a batch, it ends before it, and a batch larger than a chunk is one chunk', async () => {
    const ended = (at: number): JournalRow => ({
      ...{ kind: 'order_ended', order_id: `1-${at}`, user_id: 1 + (at % 7), status: 'CANCELLED' },
      ...{ reason: 'USER_CANCELLED', note: null, reserved_delta: '-1', at: 9 },
    })
    const cleared: JournalRow = {
      ...{ kind: 'batch_cleared', batch_id: 5, as_of: 9, oracle_price: '1', oracle_at: 1, lo: 1, hi: 9 },
      ...{ price: 1, volume: 0, demand: 0, supply: 0, rule: 'volume', parts: 1, fills: [], closing: [] },
    }
    const protection: JournalRow = {
      ...{ kind: 'orders_protected', as_of: 9, rule_version: 1, oracle_price: '1', oracle_at: 1 },
      ...{ standing_seq: 1, price_protection: '1' },
      orders: [{ order_id: '1-4', user_id: 5, best: null, level: null, reference: '1', price: 7 }],
    }
    const first = ((await state())?.seq ?? 0) + 1
    const listed: JournalRow = { kind: 'market_listed', spec: { symbol: 'M1', kind: 'perpetual' } as never }
    await appendToJournal(test.db, 'm1', [listed, ...[1, 2, 3, 4, 5].map((at) => placed(1, at))])
    const batch = [ended(1), protection, cleared, ended(2), ended(3)]
    await appendToJournal(test.db, 'm1', batch)
    await appendToJournal(test.db, 'm1', [placed(1, 11)])
    const sizes: (number | undefined)[] = []
    for (let at = 0; at < 4; at++)
      sizes.push((await projectChunk(test.db, ['m1'], { ...options, limit: 4 }))?.rows)
    expect(sizes).to.deep.equal([4, 2, 5, 1])
    const found = (await rows()).filter(({ seq }) => seq >= first)
    expect(found.map(({ batch_id }) => batch_id)).to.deep.equal([null, null, 5, null])
    const { orders: changed = [] } = decodeChanges(found[2]?.changes ?? '')
    expect(changed.map(({ order_id }) => order_id).sort()).to.deep.equal(['1-1', '1-2', '1-3', '1-4'])
  })

  it('when a projection is filled, it appends nothing, and a new epoch begins once it is complete', async () => {
    await appendToJournal(test.db, 'm1', [placed(1, 1)])
    await projectChunk(test.db, ['m1'], options)
    const before = await state()
    await rebuildProjection(test.db, 'orders', options)
    const afterwards = await state()
    expect(afterwards?.seq).to.equal(before?.seq)
    expect(afterwards?.first_seq).to.equal(before?.seq)
    expect(afterwards?.epoch).to.be.greaterThan(before?.epoch ?? 0)
  })

  it('when the shards of a projection are filled one after the other, a new epoch begins with each', async () => {
    await appendToJournal(
      test.db,
      'm2',
      [1, 2, 3].map((at) => placed(2, at)),
    )
    await projectAll(test.db, options)
    const projections = PROJECTIONS.map((each) =>
      each.name === orders.name ? { ...each, version: each.version + 1 } : each,
    )
    await registerShards(test.db, projections)
    const epochs = [(await state())?.epoch as number]
    for (;;) {
      const { isFilling, completed } = await fillStep(test.db, { ...options, projections })
      if (completed.length > 0) epochs.push((await state())?.epoch as number)
      if (!isFilling) break
    }
    expect(epochs.length, 'the empty market, then the other').to.be.at.least(3)
    for (const [at, epoch] of epochs.entries())
      if (at > 0) expect(epoch).to.be.above(epochs[at - 1] as number)
  })

  it('when rows are old, new ones replace them a few at a time', async () => {
    await appendToJournal(
      test.db,
      'm1',
      [1, 2, 3, 4, 5, 6, 7, 8].map((at) => placed(1, at)),
    )
    for (let at = 0; at < 7; at++) await projectChunk(test.db, ['m1'], options)
    await sql`update read.feed set at = at - ${FEED_AGE_MS + 1_000}`.execute(test.db)
    const before = (await rows()).length
    await projectChunk(test.db, ['m1'], options)
    expect((await rows()).length).to.equal(before + 1 - 4)
  })

  it('when the database has lost the feed in a crash, a new epoch begins with the next chunk', async () => {
    const before = await state()
    // What Postgres does with unlogged tables.
    for (const table of ['read.feed', 'read.feed_heads', 'read.feed_state'])
      await sql`delete from ${sql.table(table)}`.execute(test.db)
    await appendToJournal(test.db, 'm1', [placed(1, 1)])
    await projectChunk(test.db, ['m1'], options)
    expect((await state())?.epoch).to.be.greaterThan(before?.epoch ?? 0)
  })
})

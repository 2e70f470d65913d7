/** Projections are filled on their own: in any order, interrupted anywhere, the result equals a rebuild of the whole read model. */
import { expect } from 'chai'
import fc from 'fast-check'
import { sql } from 'kysely'
import { after, before, beforeEach, describe, it } from 'mocha'
import { ACCOUNTS_SHARD, type JournalRow, marketShard } from '../../../domain/journal/journal-row.ts'
import type { Millis } from '../../../domain/units.ts'
import { fillStep } from '../../../indexer/project/fill.ts'
import { orders } from '../../../indexer/project/orders/projection.ts'
import { projectAlone, projectChunk } from '../../../indexer/project/project-chunk.ts'
import { projectAll, projectShards, registerShards } from '../../../indexer/project/project-shards.ts'
import type { Projection } from '../../../indexer/project/projection.ts'
import { PROJECTIONS } from '../../../indexer/project/projections.ts'
import { Projector } from '../../../indexer/project/projector.ts'
import { rebuild, rebuildProjection } from '../../../indexer/project/rebuild.ts'
import { waitFor } from '../../support/patience.ts'
import { changeRows } from '../../support/rows/journal.ts'
import { freshDatabase, type TestDatabase } from '../support/database.ts'
import { createPlacedCounts, placedCounts, readPlacedCounts } from '../support/extra-projection.ts'
import { anyHistory, type History } from '../support/histories.ts'
import { placements } from '../support/placements.ts'
import { appendToJournal, clearJournal, dumpReadModel } from '../support/read-model.ts'

const killPoint = () => {}
const crash = () => {
  throw new Error('killed')
}
const WITH_EXTRA = [...PROJECTIONS, placedCounts]
const CHUNK = 100

/** The projections, with one projection in its next version. */
const raised = (projections: readonly Projection[], name: string): readonly Projection[] =>
  projections.map((each) => (each.name === name ? { ...each, version: each.version + 1 } : each))

const deposit = (userId: number): JournalRow => ({
  kind: 'balance_changed',
  ...{ cause: 'deposit', rollback: false, user_id: userId, free_delta: '1', pending_withdrawal_delta: '0' },
  ...{ block: 1, tx_hash: '0x', log_index: 0, at: 1 },
})
describe('filling a projection', function () {
  this.timeout(120_000)
  let test: TestDatabase
  before(async () => {
    test = await freshDatabase()
    await createPlacedCounts(test.db)
  })
  after(() => test.close())
  beforeEach(async () => {
    await clearJournal(test.db)
    await sql`truncate read.placed_counts`.execute(test.db)
  })

  const options = (projections: readonly Projection[], limit = CHUNK) => ({ limit, killPoint, projections })

  /** Physical identity of the rows of a table: it changes with each write, even of equal values. */
  async function versionsOf(tables: readonly string[]): Promise<string[]> {
    const found = await Promise.all(
      tables.map((table) =>
        sql<{
          line: string
        }>`select concat_ws(' ', ${table}::text, ctid, xmin) as line from ${sql.table(table)}`.execute(
          test.db,
        ),
      ),
    )
    return found.flatMap(({ rows }) => rows.map(({ line }) => line)).sort()
  }

  const placeOf = async (projection: string, shard: string) =>
    test.db
      .selectFrom('read.places')
      .select(['seq', 'fill_to', 'version', 'epoch'])
      .where('projection', '=', projection)
      .where('shard', '=', shard)
      .executeTakeFirst()

  /** Two markets with a journal of many chunks, projected. */
  async function longJournal(): Promise<void> {
    for (const marketId of [1, 2]) {
      await appendToJournal(test.db, marketShard(marketId), placements(marketId, 1, 1_050))
    }
    await projectAll(test.db, options(PROJECTIONS))
  }

  it('when a projection is new, it is filled in bounded chunks, and no other projection is written', async () => {
    await longJournal()
    const tables = PROJECTIONS.flatMap((each) => each.tables)
    const before = await versionsOf(tables)
    await registerShards(test.db, WITH_EXTRA)
    expect((await placeOf('placed_counts', 'm1'))?.fill_to).to.equal(1_050)
    expect(await projectShards(test.db, ['m1'], options(WITH_EXTRA)), 'rows of shared chunks').to.equal(0)
    let last = 0
    for (;;) {
      const { isFilling } = await fillStep(test.db, options(WITH_EXTRA))
      if (!isFilling) break
      const { rows } = await sql<{ done: number }>`
        select sum(seq)::bigint as done from read.places where projection = 'placed_counts'
      `.execute(test.db)
      expect((rows[0]?.done ?? 0) - last).to.be.within(0, CHUNK)
      last = rows[0]?.done ?? 0
    }
    expect([...(await readPlacedCounts(test.db)).values()]).to.deep.equal(Array(7).fill(300))
    expect(await versionsOf(tables)).to.deep.equal(before)
    expect(await placeOf('placed_counts', 'm1')).to.deep.equal({
      seq: 1_050,
      fill_to: null,
      version: 1,
      epoch: 1,
    })
    // From here on it shares the chunks of other projections.
    await appendToJournal(test.db, 'm1', placements(1, 2_000, 3))
    const progress = await projectChunk(test.db, ['m1'], options(WITH_EXTRA))
    expect(progress?.shards[0]?.projections).to.have.members(WITH_EXTRA.map(({ name }) => name))
    expect(progress?.rows).to.equal(3)
  })

  it('when the version of a projection is raised, only its tables are filled again', async () => {
    await longJournal()
    const before = await dumpReadModel(test.db)
    const others = await versionsOf(['read.orders', 'read.batches', 'read.book_levels'])
    await sql`update read.balances set free = 77`.execute(test.db)
    const projections = raised(PROJECTIONS, 'balances')
    await projectAll(test.db, options(projections))
    const { 'read.places': _, ...tables } = await dumpReadModel(test.db)
    const { 'read.places': __, ...expected } = before
    expect(tables).to.deep.equal(expected)
    expect(await versionsOf(['read.orders', 'read.batches', 'read.book_levels'])).to.deep.equal(others)
    expect((await placeOf('balances', 'm2'))?.version).to.equal(2)
    expect((await placeOf('orders', 'm2'))?.version).to.equal(orders.version)
  })

  it('when an indexer of the earlier version still runs, it leaves the projection alone', async () => {
    await longJournal()
    await projectAll(test.db, options(raised(PROJECTIONS, 'balances')))
    await appendToJournal(test.db, 'm1', placements(1, 3_000, 5))
    await appendToJournal(test.db, 'm3', placements(3, 1, 5))
    await projectAll(test.db, options(PROJECTIONS))
    expect((await placeOf('balances', 'm1'))?.seq).to.equal(1_050)
    expect((await placeOf('orders', 'm1'))?.seq).to.equal(1_055)
    expect(await placeOf('balances', 'm3')).to.equal(undefined)
    await projectAll(test.db, options(raised(PROJECTIONS, 'balances')))
    const { free, reserved } = await test.db
      .selectFrom('read.balances')
      .select((eb) => [eb.fn.sum<bigint>('free').as('free'), eb.fn.sum<bigint>('reserved').as('reserved')])
      .executeTakeFirstOrThrow()
    expect([free, reserved]).to.deep.equal([0n, 2_110n])
  })

  it('when one projection is rebuilt, the epoch stays and all other projections serve', async () => {
    await longJournal()
    const before = await dumpReadModel(test.db)
    const others = await versionsOf(['read.balances'])
    await sql`delete from read.book_levels`.execute(test.db)
    await rebuildProjection(test.db, 'orders', options(PROJECTIONS))
    expect(await dumpReadModel(test.db)).to.deep.equal(before)
    expect(await versionsOf(['read.balances'])).to.deep.equal(others)
    const place = { seq: 1_050, fill_to: null, version: orders.version, epoch: 1 }
    expect(await placeOf('orders', 'm1')).to.deep.equal(place)
  })

  it('when the orders are filled again, their events are numbered by time', async () => {
    await longJournal()
    await rebuildProjection(test.db, 'orders', options(PROJECTIONS))
    const events = await test.db.selectFrom('read.order_events').select('at').orderBy('arrival').execute()
    expect(events.map(({ at }) => at)).to.deep.equal(events.map(({ at }) => at).sort((a, b) => a - b))
  })

  it('when a shard is new, its projections are complete at once', async () => {
    await longJournal()
    await appendToJournal(test.db, 'm3', placements(3, 1, 5))
    await registerShards(test.db)
    expect((await placeOf('orders', 'm3'))?.fill_to).to.equal(null)
  })

  it('when the journal lacks rows that a fill needs, it fails and the projection stays incomplete', async () => {
    await longJournal()
    await changeRows(test.db, (placed) => (placed.shard === 'm1' && placed.seq <= 500 ? null : placed))
    await registerShards(test.db, WITH_EXTRA)
    const fill = async () => {
      for (let steps = 0; steps < 200; steps++) await fillStep(test.db, options(WITH_EXTRA))
    }
    const error = await fill().then(
      () => null,
      (failure: Error) => failure,
    )
    expect(error?.message).to.match(/the journal of m1 lacks the rows behind row 0/)
    expect((await placeOf('placed_counts', 'm1'))?.fill_to).to.equal(1_050)
  })

  it('when two indexers fill at once, each row is projected once', async () => {
    await longJournal()
    await registerShards(test.db, WITH_EXTRA)
    const indexer = async () => {
      while ((await fillStep(test.db, options(WITH_EXTRA, 17))).isFilling) {}
    }
    await Promise.all([indexer(), indexer(), projectAll(test.db, options(WITH_EXTRA, 23))])
    expect([...(await readPlacedCounts(test.db)).values()]).to.deep.equal(Array(7).fill(300))
  })

  it('when a projection fails, all other projections of its shard advance', async () => {
    await longJournal()
    const broken: Projection = { ...placedCounts, project: async () => crash() }
    let failures = 0
    const loops = new Projector(
      {
        db: test.db,
        fillDb: test.db,
        clock: { now: () => Date.now() as Millis },
        logger: { debug() {}, info() {}, warn() {}, error: () => void failures++ },
        metrics: { projected() {}, failed() {} },
      },
      { ...options([...PROJECTIONS, broken], 2_000), pollMs: 20 },
    )
    loops.start()
    for (let round = 1; round <= 3; round++) {
      await appendToJournal(test.db, ACCOUNTS_SHARD, [deposit(1)])
      loops.wake(ACCOUNTS_SHARD)
      await waitFor(
        () => placeOf('balances', ACCOUNTS_SHARD),
        (place) => place?.seq === round,
      )
    }
    await loops.stop()
    expect(failures).to.be.greaterThan(0)
    expect((await placeOf('placed_counts', ACCOUNTS_SHARD))?.seq).to.equal(0)
  })

  it('when rows arrive faster than a fill ends, it joins the other projections and completes', async () => {
    await longJournal()
    const loops = new Projector(
      {
        db: test.db,
        fillDb: test.db,
        clock: { now: () => Date.now() as Millis },
        logger: { debug() {}, info() {}, warn() {}, error() {} },
        metrics: { projected() {}, failed() {} },
      },
      { ...options(WITH_EXTRA, 200), pollMs: 20 },
    )
    loops.start()
    let seq = 5_000
    const isComplete = async () => {
      const places = await Promise.all(['m1', 'm2'].map((shard) => placeOf('placed_counts', shard)))
      return places.every((place) => place !== undefined && place.fill_to === null)
    }
    while (!(await isComplete())) {
      await appendToJournal(test.db, 'm1', placements(1, seq, 20))
      loops.wake('m1')
      seq += 20
      await new Promise((resolve) => setTimeout(resolve, 10))
      if (seq > 60_000) throw new Error('the fill does not end')
    }
    await loops.stop()
    await projectAll(test.db, options(WITH_EXTRA))
    const total = [...(await readPlacedCounts(test.db)).values()].reduce((sum, count) => sum + count, 0)
    expect(total).to.equal(2_100 + seq - 5_000)
  })

  describe('in any order', () => {
    const NAMES = WITH_EXTRA.map(({ name }) => name)
    const anyAct = fc.oneof(
      {
        weight: 5,
        arbitrary: fc.record({
          act: fc.constant('chunk'),
          shard: fc.nat(2),
          limit: fc.integer({ min: 1, max: 9 }),
        }),
      },
      {
        weight: 6,
        arbitrary: fc.record({
          act: fc.constant('fill'),
          shard: fc.nat(2),
          limit: fc.integer({ min: 1, max: 9 }),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          act: fc.constant('alone'),
          shard: fc.nat(2),
          limit: fc.integer({ min: 1, max: 9 }),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          act: fc.constant('crash'),
          shard: fc.nat(2),
          limit: fc.integer({ min: 1, max: 9 }),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          act: fc.constant('both'),
          shard: fc.nat(2),
          limit: fc.integer({ min: 1, max: 9 }),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          act: fc.constant('raise'),
          shard: fc.nat(NAMES.length - 1),
          limit: fc.constant(1),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({ act: fc.constant('append'), shard: fc.nat(2), limit: fc.constant(1) }),
      },
    )

    /** The journal in two halves: the first is projected before the extra projection exists. */
    async function write(history: History, half: 0 | 1): Promise<void> {
      const part = (rows: readonly JournalRow[]): readonly JournalRow[] => {
        const middle = Math.floor(rows.length / 2)
        return half === 0 ? rows.slice(0, middle) : rows.slice(middle)
      }
      await appendToJournal(test.db, ACCOUNTS_SHARD, part(history.accounts))
      for (const { marketId, rows } of history.markets) {
        await appendToJournal(test.db, marketShard(marketId), part(rows))
      }
    }

    it('when versions rise and indexers crash anywhere, the result equals a rebuild', async () => {
      await fc.assert(
        fc.asyncProperty(
          anyHistory,
          fc.array(anyAct, { minLength: 10, maxLength: 60 }),
          async (history, acts) => {
            await clearJournal(test.db)
            await sql`truncate read.placed_counts`.execute(test.db)
            await write(history, 0)
            await projectAll(test.db, options(PROJECTIONS, 7))
            let projections: readonly Projection[] = WITH_EXTRA
            let isWhole = false
            const shards = await registerShards(test.db, projections)
            for (const { act, shard: number, limit } of acts) {
              const shard = shards[number % shards.length] as string
              const each = { limit, killPoint, projections }
              if (act === 'chunk') await projectChunk(test.db, [shard], each)
              if (act === 'fill') await fillStep(test.db, each)
              if (act === 'alone') {
                await projectAlone(
                  test.db,
                  [shard],
                  projections[limit % projections.length] as Projection,
                  each,
                )
              }
              if (act === 'crash') {
                await projectChunk(test.db, [shard], { ...each, killPoint: crash }).catch(() => {})
                await fillStep(test.db, { ...each, killPoint: crash }).catch(() => {})
              }
              if (act === 'both') {
                await Promise.all([
                  fillStep(test.db, each),
                  projectChunk(test.db, [shard], each),
                  fillStep(test.db, each),
                ])
              }
              if (act === 'raise') projections = raised(projections, NAMES[number] as string)
              if (act === 'append' && !isWhole) {
                await write(history, 1)
                isWhole = true
              }
            }
            if (!isWhole) await write(history, 1)
            await projectAll(test.db, options(projections, 50))
            const filled = [await dumpReadModel(test.db), await readPlacedCounts(test.db)]
            const { rows } = await sql`select from read.places where fill_to is not null`.execute(test.db)
            expect(rows).to.have.length(0)
            await rebuild(test.db, options(projections, 1_000))
            expect(filled).to.deep.equal([await dumpReadModel(test.db), await readPlacedCounts(test.db)])
          },
        ),
        { numRuns: 25 },
      )
    })
  })
})

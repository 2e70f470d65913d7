/** One loop projects all shards: in one transaction per chunk, by one process at a time, without one shard delaying another. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { createDb, createPool } from '../../../db/client.ts'
import { ACCOUNTS_SHARD, type JournalRow } from '../../../domain/journal/journal-row.ts'
import type { Millis } from '../../../domain/units.ts'
import { isOfRows } from '../../../indexer/project/chunk-errors.ts'
import { orders } from '../../../indexer/project/orders/projection.ts'
import { projectChunk } from '../../../indexer/project/project-chunk.ts'
import { projectAll, registerShards } from '../../../indexer/project/project-shards.ts'
import type { Projection } from '../../../indexer/project/projection.ts'
import { PROJECTIONS } from '../../../indexer/project/projections.ts'
import { Projector, type ProjectorOptions } from '../../../indexer/project/projector.ts'
import { waitFor } from '../../support/patience.ts'
import { changeRows } from '../../support/rows/journal.ts'
import { freshDatabase, type TestDatabase } from '../support/database.ts'
import { createPlacedCounts, placedCounts, readPlacedCounts } from '../support/extra-projection.ts'
import { placed, placements } from '../support/placements.ts'
import { appendToJournal, clearJournal } from '../support/read-model.ts'

const killPoint = () => {}
const MARKETS = ['m1', 'm2', 'm3', 'm4', 'm5'] as const

/** A row that no projection of orders can apply: its order was never placed. */
const poison = (orderId: string): JournalRow => ({
  ...{ kind: 'order_ended', order_id: orderId, user_id: 1, status: 'CANCELLED', reason: 'USER_CANCELLED' },
  ...{ reserved_delta: '0', at: 1, note: null },
})

interface Alarm {
  readonly shard?: string
  readonly projection?: string
  readonly loop?: string
  readonly err?: Error
}

describe('the projector', function () {
  this.timeout(60_000)
  let test: TestDatabase
  let alarms: Alarm[] = []
  const running: Projector[] = []
  before(async () => {
    test = await freshDatabase()
    await createPlacedCounts(test.db)
  })
  after(() => test.close())
  beforeEach(async () => {
    alarms = []
    await clearJournal(test.db)
    await sql`truncate read.placed_counts`.execute(test.db)
  })

  // One that a failed test leaves behind would project the rows of the next test.
  afterEach(async () => {
    await Promise.all(running.splice(0).map((projector) => projector.stop()))
  })

  const startProjector = (options: Partial<ProjectorOptions> = {}, db = test.db): Projector => {
    const projector = new Projector(
      {
        db,
        fillDb: test.db,
        clock: { now: () => Date.now() as Millis },
        logger: { debug() {}, info() {}, warn() {}, error: (fields) => void alarms.push(fields) },
        metrics: { projected() {}, failed() {} },
      },
      { limit: 1_000, killPoint, pollMs: 50, ...options },
    )
    projector.start()
    running.push(projector)
    return projector
  }

  const placesOf = (projection: string) => async () => {
    const rows = await test.db
      .selectFrom('read.places')
      .select(['shard', 'seq'])
      .where('projection', '=', projection)
      .execute()
    return new Map(rows.map(({ shard, seq }) => [shard, seq]))
  }

  /** Places whose fill has not ended. */
  const unfilled = async () => {
    const rows = await test.db
      .selectFrom('read.places')
      .select(['shard', 'projection'])
      .where('fill_to', 'is not', null)
      .execute()
    return rows.map(({ shard, projection }) => `${shard} ${projection}`)
  }

  describe('a chunk over many shards', () => {
    beforeEach(async () => {
      for (const [at, shard] of MARKETS.entries())
        await appendToJournal(test.db, shard, [placed(at + 1, 1), placed(at + 1, 2)])
      await registerShards(test.db)
      await sql`update read.places set fill_to = null`.execute(test.db)
    })

    const writers = async (): Promise<string[]> => {
      const tables = ['read.places', 'read.orders', 'read.book_levels', 'read.feed']
      const found = await Promise.all(
        tables.map((table) =>
          sql<{ xmin: string }>`select distinct xmin::text from ${sql.table(table)}`.execute(test.db),
        ),
      )
      return [...new Set(found.flatMap(({ rows }) => rows.map(({ xmin }) => xmin)))]
    }

    it('when it is projected, one transaction writes the rows, places and feed of all of them', async () => {
      const progress = await projectChunk(test.db, MARKETS, { limit: 1_000, killPoint })
      expect(progress?.rows).to.equal(10)
      expect(progress?.shards.map(({ shard, seq }) => [shard, seq])).to.deep.equal(
        MARKETS.map((shard) => [shard, 2]),
      )
      await sql`delete from read.places where shard = ${ACCOUNTS_SHARD}`.execute(test.db)
      expect(await writers()).to.have.length(1)
    })

    it('when it fails before its write, nothing of any shard is written', async () => {
      const crash = () => {
        throw new Error('killed')
      }
      await projectChunk(test.db, MARKETS, { limit: 1_000, killPoint: crash }).catch(() => {})
      expect(await test.db.selectFrom('read.orders').select('order_id').execute()).to.deep.equal([])
      expect([...(await placesOf('orders')()).values()].every((seq) => seq === 0)).to.equal(true)
    })

    it('when an account has rows in several shards, each row of its topic names the one before', async () => {
      await projectChunk(test.db, MARKETS, { limit: 5, killPoint })
      await projectChunk(test.db, MARKETS, { limit: 5, killPoint })
      const rows = await test.db.selectFrom('read.feed').selectAll().orderBy('seq').execute()
      expect(rows.map(({ shard }) => shard)).to.deep.equal([...MARKETS, ...MARKETS])
      const last = new Map<string, number>()
      for (const { seq, heads, balances, shard } of rows) {
        for (const [topic, before] of Object.entries(heads)) {
          expect(before, `${topic} in row ${seq}`).to.equal(last.get(topic) ?? 0)
          last.set(topic, seq)
        }
        expect(balances, shard).to.have.length(1)
      }
      expect([...last.keys()].filter((topic) => topic.startsWith('user '))).to.not.be.empty
      const stored = await test.db.selectFrom('read.feed_heads').select(['topic', 'seq']).execute()
      expect(new Map(stored.map(({ topic, seq }) => [topic, seq]))).to.deep.equal(last)
    })
  })

  it('when rows exceed a chunk, shards with few rows get all their rows, and large shards get equal shares', async () => {
    for (const [shard, rows] of [
      ['m1', 3],
      ['m2', 50],
      ['m3', 90],
    ] as const)
      await appendToJournal(test.db, shard, placements(Number(shard.slice(1)), 1, rows))
    await registerShards(test.db)
    const progress = await projectChunk(test.db, MARKETS, { limit: 63, killPoint })
    expect(progress?.shards.map(({ shard, seq }) => [shard, seq])).to.deep.equal([
      ['m1', 3],
      ['m2', 30],
      ['m3', 30],
    ])
    expect(progress?.more).to.deep.equal(['m2', 'm3'])
  })

  it('when one shard has a backlog, a row of another shard with a waiting bookmark does not wait for it', async () => {
    await appendToJournal(test.db, 'm2', [placed(2, 1)])
    await projectAll(test.db, { limit: 1_000, killPoint })
    for (let seq = 1; seq <= 20_000; seq += 5_000)
      await appendToJournal(test.db, 'm1', placements(1, seq, 5_000))
    const projector = startProjector()
    await waitFor(placesOf('balances'), (places) => (places.get('m1') ?? 0) > 0)
    await appendToJournal(test.db, 'm2', [placed(2, 2)])
    projector.wake('m2', true)
    const places = await waitFor(placesOf('balances'), (seen) => seen.get('m2') === 2)
    expect(places.get('m1')).to.be.lessThan(20_000)
    await projector.stop()
  })

  it('when a shard has a row that a projection cannot apply, this projection stops there alone, with an alarm', async () => {
    for (const [at, shard] of MARKETS.entries())
      await appendToJournal(test.db, shard, [placed(at + 1, 1), placed(at + 1, 2)])
    await appendToJournal(test.db, 'm3', [poison('3-99')])
    const projector = startProjector()
    const isElsewhere = (places: Map<string, number>) =>
      MARKETS.every((shard) => (places.get(shard) ?? 0) >= 2)
    await waitFor(placesOf('balances'), isElsewhere)
    await waitFor(placesOf('orders'), (places) =>
      MARKETS.every((shard) => shard === 'm3' || (places.get(shard) ?? 0) === 2),
    )
    await waitFor(placesOf('balances'), (places) => places.get('m3') === 3)
    await waitFor(
      async () => alarms,
      (seen) => seen.length > 0,
    )
    await appendToJournal(test.db, 'm4', [placed(4, 3)])
    projector.wake('m4')
    await waitFor(placesOf('orders'), (places) => places.get('m4') === 3)
    // The rows were there before their places, so that fills meet the row too; they end everywhere else.
    await waitFor(unfilled, (names) => names.length === 1)
    for (const { shard, projection, loop, err } of alarms)
      expect(`${shard} ${projection}`, `${loop}: ${err?.stack}`).to.equal('m3 orders')
    expect((await placesOf('orders')()).get('m3')).to.equal(0)
    await changeRows(test.db, (stored) =>
      stored.shard === 'm3' && stored.seq === 3 ? { ...stored, row: placed(3, 3) } : stored,
    )
    await waitFor(placesOf('orders'), (places) => places.get('m3') === 3)
    await waitFor(unfilled, (names) => names.length === 0)
    await projector.stop()
  })

  it('when a projector freezes within a chunk, another one takes over, and the first writes nothing', async () => {
    const thawed = Promise.withResolvers<void>()
    const isFrozen = Promise.withResolvers<void>()
    let isThawed = false
    const freezing: Projection = {
      ...orders,
      async project(tx, entries) {
        const writes = await orders.project(tx, entries)
        if (isThawed) return writes
        // Only the other projector may end this session, however slow the machine is.
        await sql`select set_config('idle_in_transaction_session_timeout', '0', true)`.execute(tx)
        isFrozen.resolve()
        await thawed.promise
        return writes
      },
    }
    const own = createDb(createPool({ url: test.url, connections: 2, name: 'frozen projector' }))
    await appendToJournal(test.db, 'm1', [placed(1, 1)])
    await registerShards(test.db, [...PROJECTIONS, placedCounts])
    const frozen = startProjector(
      { projections: [...PROJECTIONS.filter(({ name }) => name !== 'orders'), placedCounts, freezing] },
      own,
    )
    await isFrozen.promise
    const other = startProjector({ projections: [...PROJECTIONS, placedCounts] })
    await waitFor(placesOf('orders'), (places) => places.get('m1') === 1, { budgetMs: 45_000 })
    isThawed = true
    thawed.resolve()
    await appendToJournal(test.db, 'm1', [placed(1, 2), placed(1, 3)])
    other.wake('m1')
    frozen.wake('m1')
    await waitFor(placesOf('orders'), (places) => places.get('m1') === 3)
    await Promise.all([frozen.stop(), other.stop()])
    const counts = [...(await readPlacedCounts(test.db)).values()]
    expect(counts.reduce((sum, count) => sum + count, 0)).to.equal(3)
    await own.destroy()
  })

  it('when the projecting process ends, another one takes over', async () => {
    const first = startProjector()
    await appendToJournal(test.db, 'm1', [placed(1, 1)])
    await waitFor(placesOf('orders'), (places) => places.get('m1') === 1)
    const second = startProjector()
    await first.stop()
    await appendToJournal(test.db, 'm1', [placed(1, 2)])
    await waitFor(placesOf('orders'), (places) => places.get('m1') === 2)
    await second.stop()
  })
})

describe('an error of a chunk', () => {
  for (const [name, error, expected] of [
    ['a broken law of a projection', new Error('the journal has a row of order 1-7 before it'), true],
    ['a value that a column cannot hold', { code: '22003' }, true],
    ['a row that exists', { code: '23505' }, true],
    ['a deadlock', { code: '40P01' }, false],
    ['a full disk', { code: '53100' }, false],
    ['a session that the server ended', { code: '57P01' }, false],
    ['a refused connection', { code: 'ECONNREFUSED' }, false],
    ['a lost connection', new Error('Connection terminated unexpectedly'), false],
  ] as const) {
    it(`when it is ${name}, it ${expected ? 'divides the chunk' : 'does not divide the chunk'}`, () => {
      expect(isOfRows(error)).to.equal(expected)
    })
  }
})

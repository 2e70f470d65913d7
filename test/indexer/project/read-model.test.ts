/** The read model is a function of the log: of its rows, not of how they were cut, interleaved or replayed. */
import { setTimeout } from 'node:timers/promises'
import { expect } from 'chai'
import fc from 'fast-check'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { createShard } from '../../../db/journal.ts'
import { ACCOUNTS_SHARD, marketShard } from '../../../domain/journal/journal-row.ts'
import type { ReadChanges } from '../../../indexer/project/chunk-changes.ts'
import { projectChunk, projectShard, registerShards } from '../../../indexer/project/project-shard.ts'
import { renumberEvents, saveChanges } from '../../../indexer/project/read-store.ts'
import { rebuild } from '../../../indexer/project/rebuild.ts'
import { freshDatabase, type TestDatabase } from '../support/database.ts'
import { anyHistory, type History } from '../support/histories.ts'
import type { ModelOrder } from '../support/model-market.ts'
import { appendToJournal, clearJournal, dumpReadModel } from '../support/read-model.ts'

const reached = () => {}

describe('the read model', () => {
  let test: TestDatabase
  before(async () => {
    test = await freshDatabase()
  })
  after(() => test.close())

  async function write(history: History): Promise<void> {
    await clearJournal(test.db)
    await appendToJournal(test.db, ACCOUNTS_SHARD, history.accounts)
    for (const market of history.markets)
      await appendToJournal(test.db, marketShard(market.marketId), market.rows)
    await registerShards(test.db)
  }

  async function projectInTurns(shards: readonly string[], turns: readonly number[]): Promise<void> {
    for (const turn of turns) {
      const shard = shards[turn % shards.length] as string
      await projectChunk(test.db, shard, { limit: 1 + (turn % 7), reached })
    }
    for (const shard of shards) await projectShard(test.db, shard, { limit: 1_000, reached })
  }

  it('given any history, it tells what the exchange did', async () => {
    await fc.assert(
      fc.asyncProperty(anyHistory, async (history) => {
        await write(history)
        for (const shard of await registerShards(test.db)) {
          await projectShard(test.db, shard, { limit: 1_000, reached })
        }
        await expectOutcome(history)
      }),
      { numRuns: 40 },
    )
  })

  it('given any cut and interleaving of the shards, when rebuilt, it is the same', async () => {
    const anyTurns = fc.array(fc.nat(100), { maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(anyHistory, anyTurns, async (history, turns) => {
        await write(history)
        const shards = await registerShards(test.db)
        await projectInTurns(shards, turns)
        const live = await dumpReadModel(test.db)
        await rebuild(test.db, { limit: 1_000, reached })
        expect(await dumpReadModel(test.db)).to.deep.equal(live)
      }),
      { numRuns: 25 },
    )
  })

  it('given several projectors at once, every row counts once', async () => {
    await fc.assert(
      fc.asyncProperty(anyHistory, async (history) => {
        await write(history)
        const shards = await registerShards(test.db)
        const projectors = [...shards, ...shards].map((shard) => projectEagerly(shard))
        const rows = (await Promise.all(projectors)).reduce((sum, count) => sum + count, 0)
        expect(rows).to.equal(history.accounts.length + history.markets.flatMap(({ rows }) => rows).length)
        await expectOutcome(history)
      }),
      { numRuns: 6 },
    )
  })

  it('given several projectors at once, who reads events as they arrive misses none and meets none twice', async () => {
    await fc.assert(
      fc.asyncProperty(anyHistory, async (history) => {
        await write(history)
        const shards = await registerShards(test.db)
        const seen = new Set<string>()
        const latest = new Map<string, { seq: number; place: number }>()
        let last = 0
        const read = async (): Promise<void> => {
          const query = test.db.selectFrom('read.order_events').selectAll().where('arrival', '>', last)
          for (const { shard, seq, place, arrival } of await query.orderBy('arrival').execute()) {
            const name = `${shard} ${seq} ${place}`
            expect(seen.has(name), `${name} again`).to.equal(false)
            seen.add(name)
            last = arrival
            const before = latest.get(shard) ?? { seq: 0, place: 0 }
            expect(seq > before.seq || (seq === before.seq && place > before.place), name).to.equal(true)
            latest.set(shard, { seq, place })
          }
        }
        let isDone = false
        const reading = (async () => {
          while (!isDone) await read()
        })()
        await Promise.all([...shards, ...shards].map((shard) => projectEagerly(shard)))
        isDone = true
        await reading
        await read()
        const events = await test.db.selectFrom('read.order_events').selectAll().execute()
        // Beyond these are those that a rollback has taken away.
        expect(events.filter(({ shard, seq, place }) => !seen.has(`${shard} ${seq} ${place}`))).to.deep.equal(
          [],
        )
      }),
      { numRuns: 10 },
    )
  })

  it('given a chunk that has not committed, the events of another shard come after its own', async () => {
    await clearJournal(test.db)
    const nothing = { users: [], markets: [], orders: [], fills: [], removedFills: [], positions: [] }
    const eventIn = (shard: string) => ({
      ...{ ...nothing, batches: [], removedEvents: [], balances: [], levels: [] },
      events: [
        { shard, seq: 1, place: 0, order_id: '1-1', user_id: 1, kind: 'CANCELLED', details: {}, at: 1 },
      ],
    })
    const save = (shard: string, then = async () => {}) =>
      test.db.transaction().execute(async (tx) => {
        await saveChanges(tx, eventIn(shard) as unknown as ReadChanges, { shard, seq: 1 })
        await then()
      })
    const order: string[] = []
    let late: Promise<unknown> = Promise.resolve()
    await save('m1', async () => {
      late = save('m2').then(() => order.push('m2'))
      await setTimeout(200)
      order.push('m1')
    })
    await late
    expect(order).to.deep.equal(['m1', 'm2'])
    const events = await test.db.selectFrom('read.order_changes').select('shard').orderBy('arrival').execute()
    expect(events.map(({ shard }) => shard)).to.deep.equal(['m1', 'm2'])
  })

  it('given a chunk under way, a rebuild numbers events after it', async () => {
    await clearJournal(test.db)
    await createShard(test.db, 'm1')
    await registerShards(test.db)
    const order: string[] = []
    let numbered: Promise<unknown> = Promise.resolve()
    await test.db.transaction().execute(async (chunk) => {
      await sql`select from read.projection where shard = 'm1' for update`.execute(chunk)
      numbered = test.db
        .transaction()
        .execute(renumberEvents)
        .then(() => order.push('numbered'))
      await setTimeout(200)
      order.push('chunk')
    })
    await numbered
    expect(order).to.deep.equal(['chunk', 'numbered'])
  })

  it('given a rebuild, it numbers events by time, and inside a shard as the log has them', async () => {
    await fc.assert(
      fc.asyncProperty(anyHistory, async (history) => {
        await write(history)
        await rebuild(test.db, { limit: 1_000, reached })
        const events = await test.db.selectFrom('read.order_events').selectAll().orderBy('arrival').execute()
        const latest = new Map<string, { at: number; seq: number; place: number }>()
        let now = 0
        for (const { shard, seq, place, at } of events) {
          const before = latest.get(shard) ?? { at: 0, seq: 0, place: 0 }
          expect(seq > before.seq || (seq === before.seq && place > before.place)).to.equal(true)
          latest.set(shard, { at: Math.max(at, before.at), seq, place })
          expect(Math.max(at, before.at)).to.be.at.least(now)
          now = Math.max(at, before.at)
        }
      }),
      { numRuns: 10 },
    )
  })

  /** In small chunks; where another is at the shard, once more. */
  async function projectEagerly(shard: string): Promise<number> {
    for (let rows = 0; ; ) {
      const progress = await projectChunk(test.db, shard, { limit: 5, reached })
      if (progress?.rows === 0) return rows
      rows += progress?.rows ?? 0
    }
  }

  async function expectOutcome({ markets, balances }: History): Promise<void> {
    const orders = await test.db.selectFrom('read.orders').selectAll().execute()
    const model = markets.flatMap((market) => [...market.orders.values()])
    expect(byKey(orders.map(orderOf))).to.deep.equal(byKey(model.map(modelOrderOf)))
    const events = await test.db.selectFrom('read.order_events').selectAll().execute()
    expect(byKey(events.map(({ order_id, kind }) => `${order_id} ${kind}`))).to.deep.equal(
      byKey(markets.flatMap((market) => market.events.map(({ told }) => told))),
    )
    const levels = await test.db.selectFrom('read.book_levels').selectAll().execute()
    expect(byKey(levels.map((level) => Object.values(level).join(' ')))).to.deep.equal(
      byKey(markets.flatMap((market) => levelsOf(market.marketId, market.open()))),
    )
    const positions = await test.db.selectFrom('read.positions').selectAll().execute()
    const told = positions.map((p) =>
      [p.market_id, p.user_id, p.size, p.entry_notional, p.pending, p.leverage].join(' '),
    )
    const expected = markets.flatMap((market) =>
      [...market.positions].map(([user, p]) =>
        [market.marketId, user, p.size, p.entry, p.pending, p.leverage].join(' '),
      ),
    )
    expect(byKey(told)).to.deep.equal(byKey(expected))
    const rows = await test.db.selectFrom('read.balances').selectAll().execute()
    const sums = rows.map((b) => [b.user_id, b.free, b.reserved, b.pending_withdrawal].join(' '))
    const ledger = [...balances].map(([user, b]) => [user, b.free, b.reserved, b.pending].join(' '))
    expect(byKey(sums)).to.deep.equal(byKey(ledger))
  }
})

const byKey = (lines: readonly string[]): string[] => [...lines].sort()

const orderOf = (order: {
  order_id: string
  status: string
  status_reason: string | null
  filled: number
  settling: number
  reserved: bigint
}): string =>
  [order.order_id, order.status, order.status_reason, order.filled, order.settling, order.reserved].join(' ')

const modelOrderOf = ({ order_id, status, reason, filled, settling, reserved }: ModelOrder): string =>
  [order_id, status, reason, filled, settling, reserved].join(' ')

/** The slow, obvious way: every order counted. */
function levelsOf(marketId: number, orders: readonly ModelOrder[]): string[] {
  const limits = orders.filter(({ price }) => price !== 0)
  const levels = Map.groupBy(limits, ({ side, price }) => `${side} ${price}`)
  return [...levels].map(([level, own]) => {
    const quantity = own.reduce((sum, order) => sum + order.quantity - order.filled - order.settling, 0)
    return `${marketId} ${level} ${quantity} ${own.length}`
  })
}

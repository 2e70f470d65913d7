/** The read model is a function of the journal's rows: chunk sizes, interleaving of shards and rebuilds do not change it. */
import { setTimeout } from 'node:timers/promises'
import { expect } from 'chai'
import fc from 'fast-check'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { ACCOUNTS_SHARD, marketShard } from '../../../domain/journal/journal-row.ts'
import { isOfRows } from '../../../indexer/project/chunk-errors.ts'
import { fillStep } from '../../../indexer/project/fill.ts'
import { orders } from '../../../indexer/project/orders/projection.ts'
import { projectChunk, save } from '../../../indexer/project/project-chunk.ts'
import { projectShards, registerShards } from '../../../indexer/project/project-shards.ts'
import { rebuild } from '../../../indexer/project/rebuild.ts'
import { unexplainedBalances } from '../../../stack/audit/deltas.ts'
import { freshDatabase, type TestDatabase } from '../support/database.ts'
import { anyHistory, type History } from '../support/histories.ts'
import { levelsOf, type ModelOrder } from '../support/model-order.ts'
import { placed } from '../support/placements.ts'
import { appendToJournal, clearJournal, dumpReadModel } from '../support/read-model.ts'

const killPoint = () => {}

describe('the read model', () => {
  let test: TestDatabase
  before(async () => {
    test = await freshDatabase()
    // By default the server looks for a deadlock after a second, and concurrent projectors may deadlock at every chunk.
    const name = sql.id(new URL(test.url).pathname.slice(1))
    await sql`alter database ${name} set deadlock_timeout = '20ms'`.execute(test.db)
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
      // One shard, or all of them in one transaction.
      const chosen = turn % 2 === 0 ? shards : [shards[turn % shards.length] as string]
      await projectChunk(test.db, chosen, { limit: 1 + (turn % 7), killPoint })
    }
    for (const shard of shards) await projectShards(test.db, [shard], { limit: 1_000, killPoint })
  }

  it('when any history is projected, it equals the reference model', async () => {
    await fc.assert(
      fc.asyncProperty(anyHistory, async (history) => {
        await write(history)
        for (const shard of await registerShards(test.db)) {
          await projectShards(test.db, [shard], { limit: 1_000, killPoint })
        }
        await expectOutcome(history)
      }),
      { numRuns: 40 },
    )
  })

  it('when it is rebuilt, it equals the model projected in any chunks and interleaving', async () => {
    const anyTurns = fc.array(fc.nat(100), { maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(anyHistory, anyTurns, async (history, turns) => {
        await write(history)
        const shards = await registerShards(test.db)
        await projectInTurns(shards, turns)
        const live = await dumpReadModel(test.db)
        await rebuild(test.db, { limit: 1_000, killPoint })
        expect(await dumpReadModel(test.db)).to.deep.equal(live)
      }),
      { numRuns: 25 },
    )
  })

  it('when several projectors run concurrently, each row is projected once', async () => {
    await fc.assert(
      fc.asyncProperty(anyHistory, async (history) => {
        await write(history)
        const shards = await registerShards(test.db)
        const projectors = [...shards, ...shards].map((shard) => projectEagerly(shard))
        const rows = (await Promise.all(projectors)).reduce((sum, count) => sum + count, 0)
        expect(rows).to.equal(history.accounts.length + history.markets.flatMap(({ rows }) => rows).length)
        await expectOutcome(history)
      }),
      { numRuns: 6, endOnFailure: true },
    )
  })

  it('when several projectors run concurrently, a reader by arrival sees each event exactly once', async () => {
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
        // The reader may also have seen events that a rollback has deleted since.
        expect(events.filter(({ shard, seq, place }) => !seen.has(`${shard} ${seq} ${place}`))).to.deep.equal(
          [],
        )
      }),
      { numRuns: 10, endOnFailure: true },
    )
  })

  it('when a chunk has not committed, the events of another shard are numbered after its own', async () => {
    await clearJournal(test.db)
    for (const marketId of [1, 2])
      await appendToJournal(test.db, marketShard(marketId), [placed(marketId, 1)])
    await registerShards(test.db)
    const order: string[] = []
    let late: Promise<unknown> = Promise.resolve()
    await test.db.transaction().execute(async (tx) => {
      const shard = marketShard(1)
      const entries = [{ shard, marketId: 1, seq: 1, row: placed(1, 1) }]
      const saved = { shard, marketId: 1, epoch: 1, seq: 1, projections: ['orders'], entries }
      await save(tx, [await orders.project(tx, entries)], [saved])
      late = projectChunk(test.db, [marketShard(2)], { limit: 10, killPoint }).then(() => order.push('m2'))
      await setTimeout(200)
      order.push('m1')
    })
    await late
    expect(order).to.deep.equal(['m1', 'm2'])
    const events = await test.db.selectFrom('read.order_events').select('shard').orderBy('arrival').execute()
    expect(events.map(({ shard }) => shard)).to.deep.equal(['m1', 'm2'])
  })

  it('when a chunk is running, the end of a fill numbers events after it', async () => {
    await clearJournal(test.db)
    await appendToJournal(test.db, 'm1', [placed(1, 1)])
    await registerShards(test.db)
    await projectShards(test.db, ['m1'], { limit: 10, killPoint })
    const finished: string[] = []
    let filled: Promise<unknown> = Promise.resolve()
    await test.db.transaction().execute(async (chunk) => {
      await sql`select from read.places where shard = 'm1' for update`.execute(chunk)
      filled = fillStep(test.db, { limit: 10, killPoint }).then(() => finished.push('numbered'))
      await setTimeout(200)
      finished.push('chunk')
    })
    await filled
    expect(finished).to.deep.equal(['chunk', 'numbered'])
  })

  it('when it is rebuilt, it numbers events by time, and within a shard in journal order', async () => {
    await fc.assert(
      fc.asyncProperty(anyHistory, async (history) => {
        await write(history)
        await rebuild(test.db, { limit: 1_000, killPoint })
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

  /** Projects in small chunks; retries while another projector has the shard. */
  async function projectEagerly(shard: string): Promise<number> {
    for (let rows = 0; ; ) {
      const progress = await projectChunk(test.db, [shard], { limit: 5, killPoint }).catch((error) => {
        // A deadlock, or a session that the server ended while this process was halted: the projector tries such a chunk again, too.
        if (isOfRows(error)) throw error
        return null
      })
      if (progress?.rows === 0) return rows
      rows += progress?.rows ?? 0
      // Another projector has the shard.
      if (progress === null) await setTimeout(2)
    }
  }

  async function expectOutcome({ markets, balances }: History): Promise<void> {
    expect(await unexplainedBalances(test.db), 'free balances without transactions and fills').to.deep.equal(
      [],
    )
    const orders = await test.db.selectFrom('read.orders').selectAll().execute()
    const model = markets.flatMap((market) => [...market.orders.values()])
    expect(byKey(orders.map(orderOf))).to.deep.equal(byKey(model.map(modelOrderOf)))
    const events = await test.db.selectFrom('read.order_events').selectAll().execute()
    expect(byKey(events.map(({ order_id, kind }) => `${order_id} ${kind}`))).to.deep.equal(
      byKey(markets.flatMap((market) => market.events.map(({ event }) => event))),
    )
    const fills = await test.db
      .selectFrom('read.fills')
      .selectAll()
      .where('order_id', 'not like', '%0x%')
      .execute()
    expect(byKey(fills.map((fill) => `${fill.fill_id} ${fill.protection_price}`))).to.deep.equal(
      byKey(markets.flatMap(({ protections }) => [...protections].map(([id, price]) => `${id} ${price}`))),
    )
    const batches = await test.db.selectFrom('read.batches').selectAll().execute()
    expect(
      byKey(batches.map((b) => `${b.market_id} ${b.batch_id} ${b.status} ${b.rule_version}`)),
    ).to.deep.equal(
      byKey(
        markets.flatMap(({ marketId, batches }) =>
          [...batches].map(([id, status]) => `${marketId} ${id} ${status} 2`),
        ),
      ),
    )
    const levels = await test.db.selectFrom('read.book_levels').selectAll().execute()
    expect(byKey(levels.map((level) => Object.values(level).join(' ')))).to.deep.equal(
      byKey(
        markets.flatMap((market) =>
          levelsOf(market.marketId, market.open(), (userId) => market.matchedOf(userId)),
        ),
      ),
    )
    const positions = await test.db.selectFrom('read.positions').selectAll().execute()
    const projected = positions.map((p) =>
      [p.market_id, p.user_id, p.size, p.entry_notional, p.pending, p.leverage].join(' '),
    )
    const expected = markets.flatMap((market) =>
      [...market.positions].map(([user, p]) =>
        [market.marketId, user, p.size, p.entry, p.pending, p.leverage].join(' '),
      ),
    )
    expect(byKey(projected)).to.deep.equal(byKey(expected))
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
  held: bigint
  openable: number
  price: number
  protection_price: number | null
}): string =>
  [
    ...[order.order_id, order.status, order.status_reason, order.filled, order.settling, order.reserved],
    ...[order.held, order.protection_price],
    // The remainder of a market order is in no level.
    order.price === 0 ? '' : order.openable,
  ].join(' ')

const modelOrderOf = (order: ModelOrder): string =>
  orderOf({ ...order, status_reason: order.reason, protection_price: order.protection })

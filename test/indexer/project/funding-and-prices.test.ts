import { expect } from 'chai'
import fc from 'fast-check'
import { after, before, beforeEach, describe, it } from 'mocha'
import type { FundingUpdatedRow } from '../../../domain/journal/action-rows.ts'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'
import { SPANS, spanStart } from '../../../domain/market-data/interval.ts'
import { projectAll } from '../../../indexer/project/project-shards.ts'
import { rebuild } from '../../../indexer/project/rebuild.ts'
import { PRICES_KEPT } from '../../../indexer/project/tables/price-candles.ts'
import { freshDatabase, type TestDatabase } from '../support/database.ts'
import { appendToJournal, clearJournal, dumpReadModel } from '../support/read-model.ts'

const options = { limit: 1_000, killPoint: () => {} }
const MINUTE = 60_000

describe('the read tables of funding and prices', () => {
  let test: TestDatabase
  before(async () => {
    test = await freshDatabase()
  })
  beforeEach(() => clearJournal(test.db))
  after(() => test.close())

  const listed: JournalRow = { kind: 'market_listed', spec: { symbol: 'X', kind: 'perpetual' } as never }

  /** Projects the rows in chunks of `limit`, and expects that a rebuild in one chunk gives the same tables. */
  async function project(rows: readonly JournalRow[], limit = 1000): Promise<void> {
    await appendToJournal(test.db, 'm1', [listed, ...rows])
    await projectAll(test.db, { ...options, limit })
    const live = await dumpReadModel(test.db)
    await rebuild(test.db, options)
    expect(await dumpReadModel(test.db)).to.deep.equal(live)
  }

  describe('read.funding_rates', () => {
    const updated = (action_id: number, rate: string, rollback = false): FundingUpdatedRow => ({
      ...{ kind: 'funding_updated', rollback, action_id, as_of: action_id * 1000, rate },
      ...{
        valid_until: action_id * 1000 + 3_600_000,
        funding_index: '-7',
        oracle_price: '500',
        oracle_at: 5,
      },
      ...{ block: action_id, tx_hash: `0x0${action_id}`, log_index: 0, at: action_id * 1000 },
    })
    const rates = () => test.db.selectFrom('read.funding_rates').selectAll().orderBy('action_id').execute()

    it('when updates are mined, each has a row with its rate and index', async () => {
      await project([updated(1, '12'), updated(3, '-4')])
      const all = await rates()
      expect(all[0]).to.deep.equal({
        ...{ market_id: 1, action_id: 1, as_of: 1000, rate: 12n, valid_until: 3_601_000, funding_index: -7n },
        ...{ oracle_price: 500n, oracle_at: 5, tx_hash: '0x01', is_mined: true },
      })
      expect(all.map(({ rate }) => rate)).to.deep.equal([12n, -4n])
    })

    it('when the block of an update leaves the chain, it is not mined until the action is mined again', async () => {
      await project([updated(1, '12'), updated(2, '13'), updated(2, '13', true)])
      expect((await rates()).map(({ is_mined }) => is_mined)).to.deep.equal([true, false])
      await appendToJournal(test.db, 'm1', [updated(2, '14')])
      await projectAll(test.db, options)
      expect((await rates()).map(({ rate, is_mined }) => [rate, is_mined])).to.deep.equal([
        [12n, true],
        [14n, true],
      ])
    })
  })

  describe('read.price_candles', () => {
    const prices = (at: number, oracle: number, mark: number): JournalRow => ({
      ...{ kind: 'prices_updated', at, oracle_at: at },
      ...{ oracle_price: String(oracle), mark_price: String(mark) },
    })
    const stored = async (span: number) => {
      const query = test.db
        .selectFrom('read.price_candles')
        .selectAll()
        .where('span', '=', span as never)
      const rows = await query.orderBy('start').execute()
      return rows.map((row) => [
        row.start,
        ...[row.oracle_open, row.oracle_high, row.oracle_low, row.oracle_close].map(Number),
        ...[row.mark_open, row.mark_high, row.mark_low, row.mark_close].map(Number),
      ])
    }
    const minutes = () => stored(MINUTE)

    it('when prices are published, each minute has the first, highest, lowest and last of them', async () => {
      await project([
        prices(MINUTE, 10, 11),
        prices(MINUTE + 1, 14, 9),
        prices(2 * MINUTE - 1, 12, 10),
        prices(2 * MINUTE, 13, 12),
      ])
      expect(await minutes()).to.deep.equal([
        [MINUTE, 10, 14, 10, 12, 11, 11, 9, 10],
        [2 * MINUTE, 13, 13, 13, 13, 12, 12, 12, 12],
      ])
    })

    it('when a minute has no published price, it has no row', async () => {
      await project([prices(0, 1, 1), prices(3 * MINUTE, 2, 2)])
      expect((await minutes()).map(([minute]) => minute)).to.deep.equal([0, 3 * MINUTE])
    })

    it('when prices are older than the retention of a length, their rows are deleted, wherever chunks begin', async () => {
      for (const [at, kept] of PRICES_KEPT.entries()) {
        const span = SPANS[at] as number
        const rows = [prices(0, 1, 1), prices(span, 2, 2), prices(kept + span - 1, 3, 3)]
        rows.push(prices(kept + span, 4, 4))
        for (const limit of [1, 1000]) {
          await clearJournal(test.db)
          await project(rows.slice(0, 3), limit)
          expect((await stored(span)).map(([start]) => start)).to.deep.equal([span, kept])
          await project(rows.slice(3), limit)
          expect((await stored(span)).map(([start]) => start)).to.deep.equal([kept, kept + span])
          expect((await stored(SPANS[4])).map(([start]) => start)).to.include(0)
        }
      }
    })

    it('when any prices are published, the table is what all of them give, in chunks of any size', async () => {
      const anyPrices = fc.array(
        fc.tuple(fc.integer({ min: 0, max: 100_000 }), fc.integer({ min: 1, max: 99 })),
        {
          minLength: 1,
          maxLength: 25,
        },
      )
      await fc.assert(
        fc.asyncProperty(anyPrices, fc.integer({ min: 1, max: 7 }), async (drawn, limit) => {
          await clearJournal(test.db)
          let at = 0
          const all = drawn.map(([passed, price]) => {
            at += passed
            return { at, price }
          })
          await project(
            all.map(({ at, price }) => prices(at, price, price + 1)),
            limit,
          )
          for (const span of SPANS) {
            const grouped = Map.groupBy(all, (one) => spanStart(span, one.at))
            const expected = [...grouped].map(([start, group]) => {
              const values = group.map(({ price }) => price)
              const oracle = [values[0], Math.max(...values), Math.min(...values), values.at(-1)] as number[]
              return [start, ...oracle, ...oracle.map((price) => price + 1)]
            })
            expect(await stored(span), `${span}`).to.deep.equal(expected)
          }
        }),
        { numRuns: 10 },
      )
    }).timeout(60_000)
  })
})

/** What reads of market data touch does not grow with the history of the market. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { batchesOfMarket } from '../../../api/auctions/query.ts'
import { candlePage } from '../../../api/candles/query.ts'
import { fillsOfMarket } from '../../../api/fills/query.ts'
import { marketStats, tickers } from '../../../api/market-stats/query.ts'
import { openInterestPage } from '../../../api/open-interest/query.ts'
import { bookLevels } from '../../../api/order-book/query.ts'
import type { Millis } from '../../../domain/units.ts'
import { type ExplainedRead, statementsAbove } from '../../support/explained-db.ts'
import { perpetual } from '../../support/markets.ts'
import { type ExchangeFixture, startExchange } from '../support/exchange-fixture.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
/** One per minute. Each table has more than 300 pages, and a whole index of it more than 80. */
const ROWS = 30_000
const NOW = (ROWS * MINUTE) as Millis

describe('the access paths of market data', function () {
  this.timeout(60_000)
  let exchange: ExchangeFixture
  before(async () => {
    exchange = await startExchange()
    await sql
      .raw(`
      insert into read.batches (market_id, batch_id, as_of, price, lo, hi, volume, demand, supply, rule, parts, oracle_price, oracle_at, status, filled,
        fills, part_states, is_final)
      select 1, n, n * ${MINUTE}::bigint, 1000, 1, 2, 1, 1, 1, 'volume', 1, 1, 1, 'SETTLED', 1, 2, '[]', n % 10000 <> 0 from generate_series(1, ${ROWS}) n;
      insert into read.fills (fill_id, market_id, batch_id, part, place, order_id, user_id, side, price, steps, taker_steps, status, matched_at, updated_at)
      select '1-' || n || '-1-1', 1, n, 1, 1, '1-' || n, 900, 'LONG', 1000, 1, 0, 'CONFIRMED', n * ${MINUTE}::bigint, 1 from generate_series(1, ${ROWS}) n;
      insert into read.candles
      select 1, span, n * ${MINUTE}::bigint, 1000, 1000, 1000, 1000, 1, 1000, 1, 2
      from generate_series(1, ${ROWS}) n, unnest('{60000,300000,1800000,14400000,86400000}'::bigint[]) span where n * ${MINUTE}::bigint % span = 0;
      insert into read.price_candles select market_id, span, start, 1, 1, 1, 1, 1, 1, 1, 1 from read.candles;
      insert into read.open_interest_changes select market_id, span, start, 1 from read.candles;
      insert into read.book_levels (market_id, side, price, quantity, order_count)
      select 1, case when n % 2 = 0 then 'LONG' else 'SHORT' end, n, 5, 1 from generate_series(1, ${ROWS}) n;
      analyze
    `)
      .execute(exchange.db)
  })
  after(() => exchange.stop())

  const above = (most: number, read: ExplainedRead) => statementsAbove(exchange.url, most, read)

  it('when candles or open interest of any interval are read, they touch the rows of the page only', async () => {
    for (const interval of ['1m', '3m', '12h', '1w'] as const) {
      const range = { interval, from: null, to: (NOW - 10 * DAY) as Millis, limit: 50 }
      for (const priceType of ['last', 'oracle'] as const)
        expect(
          await above(60, (db) => candlePage(db, perpetual, { ...range, priceType })),
          interval,
        ).to.deep.equal([])
      expect(await above(60, (db) => openInterestPage(db, perpetual, range)), interval).to.deep.equal([])
    }
  })

  it('when auctions and fills of a range of times are read, they touch the rows of the page only', async () => {
    for (const times of [
      { from: null, to: null },
      { from: 5 * DAY, to: 6 * DAY },
      { from: null, to: DAY },
      { from: NOW + DAY, to: null },
    ]) {
      expect(
        await above(60, (db) => batchesOfMarket(db, 1, { limit: 20, before: null, ...times })),
      ).to.deep.equal([])
      expect(
        await above(60, (db) => fillsOfMarket(db, 1, { limit: 20, after: null, ...times })),
      ).to.deep.equal([])
    }
  })

  it('when statistics, tickers and a book are read, they touch few rows of each market', async () => {
    expect(await above(150, (db) => marketStats(db, NOW))).to.deep.equal([])
    expect(await above(150, (db) => tickers(db, NOW))).to.deep.equal([])
    expect(await above(60, (db) => bookLevels(db, 1, 20))).to.deep.equal([])
  })
})

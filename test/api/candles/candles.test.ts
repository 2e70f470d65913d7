import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { e18 } from '../../support/markets.ts'
import { type ExchangeFixture, startExchange } from '../support/exchange-fixture.ts'
import { MarketHistory } from '../support/market-history.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
/** A Thursday. */
const START = Date.parse('2026-10-01T00:00:00.000Z')
const iso = (at: number): string => new Date(at).toISOString()

describe('GET /v0/markets/:market_id/candlesticks', () => {
  let exchange: ExchangeFixture
  let history: MarketHistory

  before(async () => {
    exchange = await startExchange()
    history = await MarketHistory.open(exchange)
    await history.prices(START, '100', '101')
    await history.batch({ at: START + 1, price: 1000, steps: 10 })
    await history.batch({ at: START + 2, price: 1010, steps: 20 })
    await history.batch({ at: START + 3 * MINUTE, price: 990, steps: 5 })
    await history.prices(START + 3 * MINUTE, '99', '98')
    await history.batch({ at: START + 4 * DAY, price: 1020, steps: 1 })
    await history.prices(START + 5 * DAY, '102', '103')
    await exchange.project()
  })
  after(() => exchange.stop())

  const list = (query: string, headers = {}) =>
    exchange.send(null, 'GET', `/v0/markets/1/candlesticks?${query}`, undefined, headers)
  const range = (from: number, to: number) => `from=${iso(from)}&to=${iso(to)}`
  type Shown = Record<string, unknown>

  it('when batches cleared, a candle has their prices, quantities and numbers', async () => {
    const { status, body } = await list(range(START, START + MINUTE))
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(body).to.deep.equal({
      ...{ market_id: 1, symbol: 'BTC-PERP', interval: '1m', price_type: 'last', next_cursor: null },
      candles: [
        {
          start: iso(START),
          ...{
            open: 100,
            open_e18_raw: e18('100').toString(),
            high: 101,
            high_e18_raw: e18('101').toString(),
          },
          ...{
            low: 100,
            low_e18_raw: e18('100').toString(),
            close: 101,
            close_e18_raw: e18('101').toString(),
          },
          ...{ volume: 0.03, volume_e18_raw: e18('0.03').toString() },
          ...{ notional: 3.02, notional_e18_raw: e18('3.02').toString() },
          ...{ trades: 2, fills: 4, is_gap: false, is_final: true },
        },
      ],
    })
  })

  it('when an interval has no price, its candle repeats the close before it and is marked as a gap', async () => {
    const { body } = await list(`interval=1m&${range(START + MINUTE, START + 4 * MINUTE)}`)
    const shown = body.candles.map(({ open, close, volume, trades, is_gap }: Shown) => [
      ...[open, close, volume, trades, is_gap],
    ])
    expect(shown).to.deep.equal([
      [99, 99, 0.005, 1, false],
      [101, 101, 0, 0, true],
      [101, 101, 0, 0, true],
    ])
  })

  it('when a week is asked for, it starts on Monday', async () => {
    const { body } = await list(`interval=1w&to=${iso(START + 5 * DAY)}`)
    const starts = body.candles.map(({ start, trades }: Shown) => [start, trades])
    expect(starts).to.deep.equal([
      ['2026-10-05T00:00:00.000Z', 1],
      ['2026-09-28T00:00:00.000Z', 3],
    ])
  })

  for (const [type, open, low] of [
    ['mark', 101, 98],
    ['oracle', 100, 99],
  ] as const) {
    it(`when ${type} prices are asked for, the candles have them and no quantities`, async () => {
      const { body } = await list(`price_type=${type}&interval=15m&${range(START, START + 15 * MINUTE)}`)
      expect(body.candles).to.have.length(1)
      expect(body.candles[0]).to.include({
        open,
        high: open,
        low,
        close: low,
        volume: 0,
        trades: 0,
        fills: 0,
      })
    })
  }

  it('when candles are listed in pages, each interval from the first price on is on one page', async () => {
    const starts: string[] = []
    let cursor = ''
    do {
      const { body } = await list(`interval=12h&limit=4&to=${iso(START + 5 * DAY)}${cursor}`)
      starts.push(...body.candles.map(({ start }: Shown) => start))
      cursor = body.next_cursor && `&cursor=${body.next_cursor}`
    } while (cursor)
    expect(starts).to.deep.equal(Array.from({ length: 10 }, (_, at) => iso(START + (9 - at) * (DAY / 2))))
  })

  it('when the range ends in the future, the last candle is the running one, which is not final', async () => {
    const { body } = await list('interval=1d&limit=1')
    const [candle] = body.candles
    expect(Date.parse(candle.start)).to.be.within(Date.now() - DAY, Date.now())
    expect(candle).to.include({ is_gap: true, is_final: false, close: 102 })
  })

  it('when all candles of a range are final, the answer may be kept; until then it is validated each time', async () => {
    const closed = await list(range(START, START + MINUTE))
    expect(closed.headers['cache-control']).to.equal('public, max-age=86400, immutable')
    const running = await list('limit=2')
    expect(running.headers['cache-control']).to.equal('public, no-cache')
    for (const { headers } of [closed, running]) {
      const again = await list(headers === closed.headers ? range(START, START + MINUTE) : 'limit=2', {
        'if-none-match': `"other", W/${headers.etag}`,
      })
      expect([again.status, again.headers.etag]).to.deep.equal([304, headers.etag])
    }
    expect((await list('limit=2', { 'if-none-match': '"other"' })).status).to.equal(200)
  })

  it('when a batch is not confirmed yet, no candle from its interval on is final', async () => {
    await history.batch({ at: START + 6 * DAY, price: 1030, steps: 1, stage: 'MINED' })
    await history.prices(START + 8 * DAY, '102', '103')
    await exchange.project()
    const query = `interval=1d&${range(START + 5 * DAY, START + 8 * DAY)}`
    const { body, headers } = await list(query)
    expect(body.candles.map(({ is_final }: Shown) => is_final)).to.deep.equal([false, false, true])
    expect(headers['cache-control']).to.equal('public, no-cache')
  })

  it('when the market has no price yet, the list is empty; an unknown market, interval or cursor is rejected', async () => {
    const { body, headers } = await exchange.get(null, '/v0/markets/2/candlesticks')
    expect([body.candles, body.next_cursor]).to.deep.equal([[], null])
    expect(headers['cache-control']).to.equal('public, no-cache')
    expect((await exchange.get(null, '/v0/markets/99/candlesticks')).body.details.code).to.equal(
      'MARKET_NOT_FOUND',
    )
    expect((await list('interval=7m')).body.details.field).to.equal('interval')
    const { next_cursor } = (await list(`interval=12h&limit=1&to=${iso(START + DAY)}`)).body
    for (const other of ['interval=1h', 'interval=12h&price_type=mark'])
      expect((await list(`${other}&cursor=${next_cursor}`)).body.details.code).to.equal('INVALID_CURSOR')
  })
})

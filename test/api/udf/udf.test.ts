/** The adapter keeps to the public description of TradingView's Universal Data Feed. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { type ExchangeFixture, startExchange } from '../support/exchange-fixture.ts'
import { MarketHistory } from '../support/market-history.ts'

const DAY = 86_400
/** A Monday, in seconds. */
const START = Date.parse('2026-10-05T00:00:00.000Z') / 1000

describe('the UDF adapter', () => {
  let exchange: ExchangeFixture
  before(async () => {
    exchange = await startExchange()
    const history = await MarketHistory.open(exchange)
    await history.batch({ at: START * 1000, price: 1000, steps: 10 })
    await history.batch({ at: START * 1000 + 59_999, price: 1010, steps: 20 })
    await history.batch({ at: START * 1000 + 180_000, price: 990, steps: 5 })
    await history.batch({ at: (START + 9 * DAY) * 1000, price: 1020, steps: 1 })
    await exchange.project()
  })
  after(() => exchange.stop())

  const get = async (path: string) => (await exchange.get(null, `/v0/udf/${path}`)).body
  const bars = (query: string) => get(`history?symbol=BTC-PERP&${query}`)

  it('when the configuration is read, it names the resolutions, and search instead of groups', async () => {
    expect(await get('config')).to.deep.include({
      ...{ supports_search: true, supports_group_request: false, supports_marks: false, supports_time: true },
      supported_resolutions: ['1', '3', '5', '15', '30', '60', '120', '240', '480', '720', '1D', '1W'],
      exchanges: [{ value: 'CLEARBATCH', name: 'Clearbatch', desc: 'Clearbatch' }],
    })
  })

  it('when the time is read, it is Unix seconds as plain text', async () => {
    const { body, headers } = await exchange.get(null, '/v0/udf/time')
    expect(headers['content-type']).to.match(/^text\/plain/)
    expect(body).to.match(/^\d{10}$/)
    expect(Number(body)).to.be.within(Date.now() / 1000 - 60, Date.now() / 1000 + 60)
  })

  it('when a symbol is read, minmov / pricescale is its tick, and the session is open around the clock', async () => {
    const symbol = await get('symbols?symbol=BTC-PERP')
    expect(symbol).to.include({
      ...{ name: 'BTC-PERP', ticker: 'BTC-PERP', type: 'perpetual', exchange: 'CLEARBATCH', format: 'price' },
      ...{ session: '24x7', timezone: 'Etc/UTC', minmov: 1, pricescale: 10, volume_precision: 3 },
      ...{ has_intraday: true, has_daily: true, has_weekly_and_monthly: true, data_status: 'streaming' },
    })
    expect(await get('symbols?symbol=CLEARBATCH:BTC-PERP')).to.deep.equal(symbol)
    const { body: markets } = await exchange.get(null, '/v0/markets')
    for (const { symbol: name, tick_size } of markets) {
      const { minmov, pricescale } = await get(`symbols?symbol=${name}`)
      expect(minmov / pricescale, name).to.equal(tick_size)
    }
  })

  it('when a symbol is unknown, symbols and history answer with an error of the form', async () => {
    const unknown = { s: 'error', errmsg: 'unknown_symbol' }
    expect(await get('symbols?symbol=NONE')).to.deep.equal(unknown)
    expect(await get('history?symbol=NONE&resolution=1&from=1&to=2')).to.deep.equal(unknown)
  })

  it('when symbols are searched, they match by part, type and exchange, up to the limit', async () => {
    const search = async (query: string) =>
      (await get(`search?${query}`)).map(({ symbol }: { symbol: string }) => symbol)
    const [first] = await get('search?query=btc&type=&exchange=&limit=30')
    expect(first).to.deep.equal({
      ...{ symbol: 'BTC-PERP', full_name: 'CLEARBATCH:BTC-PERP', description: 'BTC-PERP on Clearbatch' },
      ...{ exchange: 'CLEARBATCH', ticker: 'BTC-PERP', type: 'perpetual' },
    })
    expect(await search('query=&limit=2')).to.have.length(2)
    expect(await search('query=btc&type=future')).to.deep.equal([])
    expect(await search('query=btc&exchange=OTHER')).to.deep.equal([])
  })

  it('when bars are read, `from` is inclusive, `to` exclusive, and they ascend', async () => {
    expect(await bars(`resolution=1&from=${START}&to=${START + 240}`)).to.deep.equal({
      ...{ s: 'ok', t: [0, 60, 120, 180].map((passed) => START + passed) },
      ...{ o: [100, 101, 101, 99], h: [101, 101, 101, 99], l: [100, 101, 101, 99], c: [101, 101, 101, 99] },
      v: [0.03, 0, 0, 0.005],
    })
    expect((await bars(`resolution=1&from=${START + 1}&to=${START + 180}`)).t).to.deep.equal([
      START + 60,
      START + 120,
    ])
  })

  it('when a number of bars is asked for, it outweighs `from` and counts back from `to`', async () => {
    const { t } = await bars(`resolution=1D&from=${START + 8 * DAY}&to=${START + 9 * DAY + 1}&countback=3`)
    expect(t).to.deep.equal([7, 8, 9].map((days) => START + days * DAY))
    expect((await bars(`resolution=1D&from=0&to=${START + 2 * DAY}&countback=50`)).t).to.deep.equal([
      START,
      START + DAY,
    ])
    for (const [short, long] of [
      ['D', '1D'],
      ['W', '1W'],
    ])
      expect(await bars(`resolution=${short}&to=${START + 14 * DAY}&countback=2`)).to.deep.equal(
        await bars(`resolution=${long}&to=${START + 14 * DAY}&countback=2`),
      )
  })

  it('when the range has no bar, the answer is no_data, with the time of the newest bar before it', async () => {
    expect(await bars(`resolution=60&from=${START - DAY}&to=${START - 3600}`)).to.deep.equal({ s: 'no_data' })
    const future = Math.floor(Date.now() / 1000) + DAY
    const { s, nextTime } = await bars(`resolution=60&from=${future}&to=${future + DAY}`)
    expect(s).to.equal('no_data')
    expect(nextTime).to.be.within(Date.now() / 1000 - 7200, Date.now() / 1000)
  })

  it('when bars are compared with candles, they are the same', async () => {
    const to = START + 14 * DAY
    for (const [resolution, interval] of [
      ['240', '4h'],
      ['1W', '1w'],
    ]) {
      const { t, c, v } = await bars(`resolution=${resolution}&from=${START}&to=${to}`)
      const path = `/v0/markets/1/candlesticks?interval=${interval}&limit=1000&to=${new Date(to * 1000).toISOString()}`
      const { candles } = (await exchange.get(null, path)).body
      const ascending = candles.toReversed()
      expect(t).to.deep.equal(ascending.map(({ start }: { start: string }) => Date.parse(start) / 1000))
      expect(c).to.deep.equal(ascending.map(({ close }: { close: number }) => close))
      expect(v).to.deep.equal(ascending.map(({ volume }: { volume: number }) => volume))
    }
  })

  it('when a resolution is not supported, or a time is missing, it is rejected with the field', async () => {
    expect((await bars('resolution=7&to=1')).details.field).to.equal('resolution')
    expect((await bars('resolution=1')).details.field).to.equal('to')
  })
})

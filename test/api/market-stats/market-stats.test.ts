import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import pg from 'pg'
import { WINDOW_MS } from '../../../api/http/shared-answers.ts'
import { e18 } from '../../support/markets.ts'
import { type ExchangeFixture, startExchange } from '../support/exchange-fixture.ts'
import { MarketHistory } from '../support/market-history.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

describe('statistics and tickers of markets', () => {
  let exchange: ExchangeFixture
  let history: MarketHistory
  // The hour of the first batch: the file may have been read long before its tests run.
  let now: number

  before(async () => {
    now = Date.now()
    exchange = await startExchange()
    history = await MarketHistory.open(exchange)
  })
  after(() => exchange.stop())

  const stats = async () => (await exchange.get(null, '/v0/markets/stats')).body
  const first = async () => (await stats())[0]
  const amounts = (fields: Readonly<Record<string, string>>) =>
    Object.assign(
      {},
      ...Object.entries(fields).map(([name, value]) => ({
        [name]: Number(value),
        [`${name}_e18_raw`]: e18(value).toString(),
      })),
    )

  it('when a market has had no batch, its prices of the day are null and its quantities 0', async () => {
    await history.prices(now, '100', '101')
    await exchange.project()
    const none = await first()
    for (const name of ['last_price', 'open_24h', 'high_24h', 'low_24h', 'change_24h', 'change_fraction_24h'])
      expect([none[name], none[`${name}_e18_raw`]], name).to.deep.equal([null, null])
    expect(none).to.include({ volume_24h: 0, notional_24h: 0, trades_24h: 0, fills_24h: 0, open_interest: 0 })
  })

  it('when batches cleared in the last 24 hours, they are counted from candles, from the price before them on', async () => {
    await history.batch({ at: now - DAY - 2 * MINUTE, price: 1000, steps: 7 })
    await history.batch({ at: now - DAY + MINUTE, price: 1040, steps: 10 })
    await history.batch({ at: now - 5 * 60 * MINUTE, price: 980, steps: 20 })
    await history.batch({ at: now - MINUTE, price: 1020, steps: 5, stage: 'MATCHED' })
    await history.batch({ at: now - MINUTE, price: 1049, steps: 900, stage: 'VOIDED' })
    await exchange.project()
    const shown = await first()
    expect(shown).to.include({
      ...{ market_id: 1, symbol: 'BTC-PERP', type: 'perpetual', mode: 'open', trades_24h: 3, fills_24h: 6 },
      ...amounts({ last_price: '102', open_24h: '100', high_24h: '104', low_24h: '98' }),
      ...amounts({ change_24h: '2', change_fraction_24h: '0.02', volume_24h: '0.035', notional_24h: '3.51' }),
      ...amounts({
        open_interest: '0.037',
        open_interest_notional: '3.7',
        mark_price: '101',
        oracle_price: '100',
      }),
      ...{ funding_rate: null, predicted_funding_rate: 0, next_funding_at: null },
    })
    expect(Date.parse(shown.since)).to.be.within(now - DAY - MINUTE, Date.now() - DAY)
  })

  it('when markets are listed, each has statistics, and those without funding have none', async () => {
    const all = await stats()
    const markets = (await exchange.get(null, '/v0/markets')).body
    expect(all.map(({ market_id }: { market_id: number }) => market_id)).to.deep.equal(
      markets.map(({ market_id }: { market_id: number }) => market_id),
    )
    expect(all[1]).to.include({ volume_24h: 0, predicted_funding_rate: null, next_funding_at: null })
  })

  it('when the book has quotes, the ticker has the best of each side with its quantity', async () => {
    const { body } = await exchange.get(null, '/v0/tickers')
    const book = (await exchange.get(null, '/v0/orderbook?symbol=BTC-PERP')).body
    const [bid, ask] = [book.bids[0], book.asks[0]]
    expect(body[0]).to.include({
      ...{ bid_price: bid.price, bid_price_e18_raw: bid.price_e18_raw, bid_quantity: bid.quantity },
      ...{ ask_price: ask.price, ask_quantity_e18_raw: ask.quantity_e18_raw, last_price: 102, trades_24h: 3 },
    })
    expect(body[1]).to.include({ bid_price: null, bid_quantity_e18_raw: null, ask_price: null })
  })

  it('when markets are filtered by type, mode or symbol, those are listed, up to the limit', async () => {
    const list = async (query: string) =>
      (await exchange.get(null, `/v0/markets?${query}`)).body.map(({ symbol }: { symbol: string }) => symbol)
    const all = await list('')
    expect(await list('symbol=BTC-PERP')).to.deep.equal(['BTC-PERP'])
    expect(await list('symbol=NONE')).to.deep.equal([])
    expect(await list('type=perpetual&mode=open')).to.deep.equal(['BTC-PERP'])
    expect(await list('mode=halted')).to.deep.equal([])
    expect(await list('mode=open&limit=2')).to.deep.equal(all.slice(0, 2))
    expect((await exchange.get(null, '/v0/markets?mode=closed')).body.details.field).to.equal('mode')
  })

  it('when there is an oracle price, the market shows the band around it in ticks; otherwise none', async () => {
    const [perpetual, other] = (await exchange.get(null, '/v0/markets')).body
    expect(perpetual.price_band).to.deep.equal(amounts({ lowest: '95', highest: '105' }))
    expect(other.price_band).to.equal(null)
  })

  it('when a book is read, it names the last batch whose matches have left it', async () => {
    expect((await exchange.get(null, '/v0/orderbook/by-market/1')).body.batch_id).to.equal(5)
    expect((await exchange.get(null, '/v0/orderbook/by-market/2')).body.batch_id).to.equal(null)
  })

  describe('requests for the same public answer', () => {
    const query = pg.Client.prototype.query
    let texts: string[] = []
    before(() => {
      pg.Client.prototype.query = function counting(this: pg.Client, ...args: unknown[]) {
        const [statement] = args
        texts.push(typeof statement === 'string' ? statement : (statement as pg.QueryConfig).text)
        return Reflect.apply(query, this, args)
      } as typeof query
    })
    after(() => {
      pg.Client.prototype.query = query
    })
    const reads = (path: string) => exchange.get(null, path)

    for (const [path, table] of [
      ['/v0/markets', 'oracle_reports'],
      ['/v0/markets/stats', 'open_interest'],
      ['/v0/tickers', 'book_levels'],
      ['/v0/orderbook/by-market/1', 'book_levels'],
    ] as const) {
      it(`when they for ${path} arrive at once, one query answers all of them, and a later one reads for itself`, async () => {
        const count = () => texts.filter((text) => text.includes(table)).length
        texts = []
        const answers = await Promise.all(Array.from({ length: 10 }, () => reads(path)))
        expect(new Set(answers.map(({ status, body }) => JSON.stringify([status, body]))).size).to.equal(1)
        expect(answers[0]?.status).to.equal(200)
        expect(answers[0]?.headers['content-type']).to.equal('application/json; charset=utf-8')
        expect(count()).to.be.within(1, 3)
        // It is in demand no longer.
        await sleep(2 * WINDOW_MS)
        const before = count()
        await reads(path)
        expect(count()).to.equal(before + 1)
      })
    }

    it('when a shared read fails, all its requests fail alike, and a later request reads for itself', async () => {
      const answers = await Promise.all([
        reads('/v0/orderbook?symbol=NONE'),
        reads('/v0/orderbook?symbol=NONE'),
      ])
      expect(answers.map(({ status }) => status)).to.deep.equal([404, 404])
      const ids = answers.map(({ body }) => body.details.request_id)
      expect(ids[0]).to.not.equal(ids[1])
    })
  })
})

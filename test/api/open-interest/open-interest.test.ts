import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { type ExchangeFixture, startExchange } from '../support/exchange-fixture.ts'
import { MarketHistory } from '../support/market-history.ts'
import { append, settledRow, type Trade } from '../support/trade-rows.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const START = Math.floor(Date.now() / DAY) * DAY - 3 * DAY
const iso = (at: number): string => new Date(at).toISOString()

describe('GET /v0/markets/:market_id/open-interest', () => {
  let exchange: ExchangeFixture
  let last: Trade

  before(async () => {
    exchange = await startExchange()
    const history = await MarketHistory.open(exchange)
    await history.batch({ at: START + 1, price: 1000, steps: 10 })
    await history.prices(START + HOUR, '100', '101')
    await history.batch({ at: START + 2 * HOUR, price: 1000, steps: 20 })
    await history.batch({ at: START + 2 * HOUR + 9, price: 1000, steps: 5 })
    await history.prices(START + 2 * HOUR + 9, '200', '101')
    last = await history.batch({ at: START + DAY, price: 1000, steps: 1 })
    await exchange.project()
  })
  after(() => exchange.stop())

  const list = (query: string) => exchange.get(null, `/v0/markets/1/open-interest?${query}`)
  type Point = Record<string, number>
  const pointsOf = async (query: string) =>
    (await list(query)).body.open_interest.map(({ open_interest, open_interest_notional }: Point) => [
      open_interest,
      open_interest_notional,
    ])

  it('when positions are mined, each interval has the open interest at its end, at the last oracle price', async () => {
    const { status, body } = await list(`from=${iso(START)}&to=${iso(START + 4 * HOUR)}`)
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(body).to.include({ market_id: 1, symbol: 'BTC-PERP', interval: '1h', next_cursor: null })
    expect(body.open_interest.map(({ start }: Point) => start)).to.deep.equal(
      [3, 2, 1, 0].map((hours) => iso(START + hours * HOUR)),
    )
    expect(await pointsOf(`from=${iso(START)}&to=${iso(START + 4 * HOUR)}`)).to.deep.equal([
      [0.035, 7],
      [0.035, 7],
      [0.01, 1],
      [0.01, null],
    ])
  })

  it('when no range is given, the newest point is the open interest of now', async () => {
    expect(await pointsOf('limit=1')).to.deep.equal([[0.036, 7.2]])
    expect((await exchange.get(null, '/v0/risk/1')).body.open_interest).to.equal(0.036)
  })

  it('when points are listed in pages of any interval, every interval since the first position is on one page', async () => {
    const all = (await list('interval=8h&limit=1000')).body.open_interest
    const paged: unknown[] = []
    let cursor = ''
    do {
      const { body } = await list(`interval=8h&limit=3${cursor}`)
      paged.push(...body.open_interest)
      cursor = body.next_cursor && `&cursor=${body.next_cursor}`
    } while (cursor)
    expect(paged).to.deep.equal(all)
    expect(all.at(-1)).to.include({ start: iso(START), open_interest: 0.035 })
  })

  it('when a block leaves the chain, its part leaves every interval in which it counted', async () => {
    await append(exchange, { ...settledRow(last, true), at: START + DAY })
    await exchange.project()
    expect(await pointsOf(`interval=1d&to=${iso(START + 2 * DAY)}`)).to.deep.equal([
      [0.035, 7],
      [0.035, 7],
    ])
  })

  it('when nothing was mined, the list is empty; an unknown market or a cursor of another interval is rejected', async () => {
    expect((await exchange.get(null, '/v0/markets/2/open-interest')).body.open_interest).to.deep.equal([])
    expect((await exchange.get(null, '/v0/markets/99/open-interest')).body.details.code).to.equal(
      'MARKET_NOT_FOUND',
    )
    const { next_cursor } = (await list('interval=8h&limit=1')).body
    expect((await list(`interval=4h&cursor=${next_cursor}`)).body.details.code).to.equal('INVALID_CURSOR')
  })
})

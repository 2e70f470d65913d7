/** Fills that only the chain has, as after a restore from a backup: their batches have no row in the read model. */
import { gunzipSync } from 'node:zlib'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { fillsOfMarket } from '../../../api/fills/query.ts'
import { fillsOfDay, type HistoryFill } from '../../../api/history/query.ts'
import type { PartSettled } from '../../../domain/journal/batch-rows.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'
import { MarketHistory } from '../support/market-history.ts'
import { append, confirmedRow, settledRow, type Trade } from '../support/trade-rows.ts'

const DAY = 86_400_000
const TODAY = Math.floor(Date.now() / DAY) * DAY
const [FIRST, LOST, LATE, OPEN] = [TODAY - 6 * DAY, TODAY - 5 * DAY, TODAY - 4 * DAY, TODAY - 3 * DAY]
const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)
const iso = (at: number): string => new Date(at).toISOString()

describe('fills that only the chain has', function () {
  this.timeout(120_000)
  let exchange: ExchangeFixture
  let [buyer, seller]: readonly User[] = []

  const get = async (day: number) => {
    const url = `/v0/history/fills/1/${dayOf(day)}.csv.gz`
    const { statusCode, rawPayload } = await exchange.api.app.inject({ method: 'GET', url })
    return { status: statusCode, bytes: rawPayload }
  }
  /** Fill, batch and time of each line. */
  const fillsOf = async (day: number): Promise<string[]> => {
    const { status, bytes } = await get(day)
    expect(status, bytes.toString('utf8', 0, 300)).to.equal(200)
    const lines = gunzipSync(bytes).toString().split('\r\n').slice(1, -1)
    return lines.map((line) => line.split(',')).map((cells) => [cells[0], cells[1], cells.at(-1)].join())
  }
  const tradeOf = (batch: number): Trade => ({
    batch,
    price: 1_000,
    steps: 10,
    buy: { orderId: `1-${buyer?.address}-${batch}`, user: buyer as User, status: 'FILLED' },
    sell: { orderId: `1-${seller?.address}-${batch}`, user: seller as User, status: 'FILLED' },
  })
  /** A part of a batch that was never cleared here. */
  function unmatchedRow(batch: number, at: number): PartSettled {
    const row = settledRow(tradeOf(batch))
    const fills = row.fills.map((fill, place) => ({
      ...fill,
      fill_id: `1-${batch}-1-c${place}`,
      matched: false,
    }))
    return { ...row, at, as_of: at - 2_000, fills, orders: [] }
  }
  const confirm = (batch: number, at: number) =>
    append(exchange, { ...confirmedRow(tradeOf(batch)), at } as never)

  before(async () => {
    exchange = await startExchange()
    buyer = await createUser(exchange.db, 'lost buyer')
    seller = await createUser(exchange.db, 'lost seller')
    const history = await MarketHistory.open(exchange)
    await history.prices(FIRST + 500, '100', '100')
    await history.batch({ at: FIRST + 1_000, price: 1_000, steps: 100 })
    for (const [batch, at] of [
      [2, LOST],
      [3, LOST + DAY - 1],
    ] as const) {
      await append(exchange, unmatchedRow(batch, at))
      await confirm(batch, at + 10_000)
    }
    // An auction before midnight, which settles after it with a fill that was not matched here.
    history.skipTo(4)
    const late = await history.batch({ at: LATE + DAY - 1_000, price: 1_000, steps: 20, stage: 'MATCHED' })
    await append(exchange, { ...unmatchedRow(late.batch, OPEN), orders: [] })
    await confirm(late.batch, OPEN + 10_000)
    await history.batch({ at: OPEN + 60_000, price: 1_000, steps: 30 })
    await append(exchange, unmatchedRow(6, OPEN + 120_000))
    await exchange.project()
  })
  after(() => exchange.stop())

  it('when a day has only fills of the chain, its file has them, and the days beside it do not', async () => {
    expect(await fillsOf(LOST)).to.deep.equal([
      ...[`1-2-1-0,2,${iso(LOST)}`, `1-2-1-1,2,${iso(LOST)}`],
      ...[`1-3-1-0,3,${iso(LOST + DAY - 1)}`, `1-3-1-1,3,${iso(LOST + DAY - 1)}`],
    ])
    expect(await fillsOf(FIRST)).to.deep.equal([
      ...[`1-1-1-0,1,${iso(FIRST + 1_000)}`, `1-1-1-1,1,${iso(FIRST + 1_000)}`],
    ])
  })

  it('when a fill of the chain is not confirmed, its day is not final; once it is, the file has every fill of the day', async () => {
    const { status, bytes } = await get(OPEN)
    expect([status, JSON.parse(bytes.toString()).details.code]).to.deep.equal([404, 'HISTORY_NOT_FINAL'])
    await confirm(6, OPEN + 130_000)
    await exchange.project()
    expect(await fillsOf(OPEN)).to.deep.equal([
      ...[`1-4-1-2,4,${iso(OPEN)}`, `1-4-1-3,4,${iso(OPEN)}`],
      ...[`1-5-1-0,5,${iso(OPEN + 60_000)}`, `1-5-1-1,5,${iso(OPEN + 60_000)}`],
      ...[`1-6-1-0,6,${iso(OPEN + 120_000)}`, `1-6-1-1,6,${iso(OPEN + 120_000)}`],
    ])
    expect(await fillsOf(LATE)).to.deep.equal([
      ...[`1-4-1-0,4,${iso(LATE + DAY - 1_000)}`, `1-4-1-1,4,${iso(LATE + DAY - 1_000)}`],
    ])
  })

  it('when the fills of a market are read by time, those of the chain are in the range of their blocks', async () => {
    const between = async (from: number | null, to: number | null): Promise<string[]> => {
      const filter = { limit: 100, after: null, from, to }
      const rows = await fillsOfMarket(exchange.db, 1, filter)
      return rows.map(({ fill_id, batch_id }) => `${batch_id}${fill_id.includes('-c') ? 'c' : ''}`)
    }
    const sides = (batch: number, suffix = ''): string[] => Array(2).fill(`${batch}${suffix}`)
    expect(await between(LOST, LOST + DAY)).to.deep.equal([...sides(3, 'c'), ...sides(2, 'c')])
    expect(await between(LOST + 1, null)).to.include.members(sides(3, 'c'))
    expect(await between(null, LOST)).to.deep.equal(sides(1))
    expect(await between(null, LOST + 1)).to.deep.equal([...sides(2, 'c'), ...sides(1)])
    expect(await between(LATE, LATE + DAY)).to.deep.equal(sides(4))
    expect(await between(OPEN, OPEN + 1)).to.deep.equal(sides(4, 'c'))
    expect(await between(OPEN + 60_001, null)).to.deep.equal(sides(6, 'c'))
  })

  it('when pages of one fill are read, they are the fills of the day in their order, each once', async () => {
    const read: string[] = []
    for (let after: HistoryFill | null = null; ; ) {
      const [row]: HistoryFill[] = await fillsOfDay(
        exchange.db,
        { kind: 'fills', marketId: 1, day: OPEN },
        { limit: 1, after },
      )
      if (row === undefined) break
      read.push(`${row.batch_id}-${row.place}`)
      after = row
    }
    expect(read).to.deep.equal(['4-2', '4-3', '5-0', '5-1', '6-0', '6-1'])
  })
})

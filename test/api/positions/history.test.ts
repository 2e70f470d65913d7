import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { profitsOfUser } from '../../../api/account-pnl/query.ts'
import { closedPositions } from '../../../api/position-history/query.ts'
import type { PartSettled } from '../../../domain/journal/batch-rows.ts'
import type { Millis } from '../../../domain/units.ts'
import { createExplainedDb } from '../../support/explained-db.ts'
import { e18 } from '../../support/markets.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'
import { append } from '../support/trade-rows.ts'

/** Amounts of an account in a part that only the chain has. */
interface Settled {
  readonly user: User
  readonly delta: number
  readonly entryDelta: string
  readonly realized?: string
  readonly fee?: string
  readonly index?: string
  readonly at?: number
}

let parts = 0

function settled({
  user,
  delta,
  entryDelta,
  realized = '0',
  fee = '0',
  index = '0',
  at,
}: Settled): PartSettled {
  const batch_id = ++parts
  return {
    ...{ kind: 'part_settled', rollback: false, batch_id, part: 1, parts: 1, action_id: batch_id },
    ...{ funding_index: index, price: 1000, block: batch_id, tx_hash: `0xdef${batch_id}`, log_index: 0 },
    at: at ?? batch_id * 1000,
    fills: [
      {
        ...{ fill_id: `1-u${batch_id}`, matched: false, order_id: `1-${user.address}-${batch_id}` },
        ...{
          user_id: user.userId,
          side: delta > 0 ? 'LONG' : 'SHORT',
          steps: Math.abs(delta),
          taker_steps: 0,
        },
        ...{ fee, free_delta: '0', from_pending: '0', realized_pnl: realized, held: '0' },
      },
    ],
    positions: [
      {
        ...{ user_id: user.userId, size_delta: delta, entry_notional_delta: entryDelta },
        ...{ folded_margin_delta: '0', leverage_before: 1, leverage_after: 1 },
      },
    ],
    ...{ orders: [], position_closed: [] },
  }
}

describe('GET /v0/account/position-history', () => {
  let exchange: ExchangeFixture
  let alice: User
  const path = '/v0/account/position-history'

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    const wei = (units: string): string => e18(units).toString()
    // Opened with 1 at 100, grown by 1 at 102, turned by 4 at 110 while funding took 0.5 per unit, and closed at 108.
    await append(
      exchange,
      settled({ user: alice, delta: 1000, entryDelta: wei('100'), fee: wei('0.1') }),
      settled({ user: alice, delta: 1000, entryDelta: wei('102'), fee: wei('0.1') }),
      settled({
        ...{ user: alice, delta: -4000, realized: wei('18'), fee: wei('0.4'), index: wei('0.0005') },
        entryDelta: (e18('220') - e18('202')).toString(),
      }),
      settled({
        ...{ user: alice, delta: 2000, realized: wei('4'), index: wei('0.0005') },
        entryDelta: `-${wei('220')}`,
      }),
    )
    await exchange.project()
  })
  after(() => exchange.stop())

  it('when a position was turned and closed, both positions have their prices, profit, share of the fee and funding', async () => {
    const { status, body } = await exchange.get(alice, path)
    expect(status, JSON.stringify(body)).to.equal(200)
    const [second, first] = body.positions
    expect(body.positions).to.have.length(2)
    expect(first).to.include({
      ...{ market_id: 1, symbol: 'BTC-PERP', side: 'LONG', largest_size: 2, opened_quantity: 2 },
      ...{ average_entry_price: 101, average_exit_price: 110, realized_pnl: 18, fees: 0.4, funding: -1 },
      ...{ ending: 'trade', opened_at: '1970-01-01T00:00:01.000Z', closed_at: '1970-01-01T00:00:03.000Z' },
    })
    expect(second).to.include({
      ...{ side: 'SHORT', largest_size: 2, average_entry_price: 110, average_exit_price: 108 },
      ...{ realized_pnl: 4, fees: 0.2, funding: 0, closed_at: '1970-01-01T00:00:04.000Z' },
    })
  })

  it('when it is read in pages, by market or by time, it has the matching positions once', async () => {
    const { positions } = (await exchange.get(alice, path)).body
    const first = (await exchange.get(alice, `${path}?limit=1&market_id=1`)).body
    const rest = (await exchange.get(alice, `${path}?limit=1&market_id=1&cursor=${first.next_cursor}`)).body
    expect([...first.positions, ...rest.positions]).to.deep.equal(positions)
    expect(rest.next_cursor).to.equal(null)
    const early = (await exchange.get(alice, `${path}?to=1970-01-01T00:00:04.000Z`)).body
    expect(early.positions).to.deep.equal(positions.slice(1))
    expect((await exchange.get(alice, `${path}?market_id=2`)).body.positions).to.deep.equal([])
    const bob = await createUser(exchange.db, 'bob')
    expect((await exchange.get(bob, path)).body.positions).to.deep.equal([])
  })

  it('when profits are read by hour or day, an interval has what its events realized, less fees, with funding', async () => {
    const profits = '/v0/account/pnl'
    const { status, body } = await exchange.get(alice, profits)
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(body.interval).to.equal('1d')
    expect(body.next_cursor).to.equal(null)
    expect(body.pnl).to.have.length(1)
    expect(body.pnl[0]).to.include({
      ...{ start: '1970-01-01T00:00:00.000Z', realized_pnl: 22, fees: 0.6, funding: -1, net_pnl: 20.4 },
    })
    const HOUR = 3_600_000
    const open = settled({ user: alice, delta: 10, entryDelta: '1', fee: '5', at: 5 * HOUR })
    const end = settled({ user: alice, delta: -10, entryDelta: '-1', realized: '7', at: 7 * HOUR })
    await append(exchange, open, end)
    await exchange.project()
    const hours = `${profits}?interval=1h`
    const series = (await exchange.get(alice, hours)).body.pnl
    expect(
      series.map((point: Record<string, unknown>) => [point.start, point.net_pnl_e18_raw]),
    ).to.deep.equal([
      ['1970-01-01T07:00:00.000Z', '7'],
      ['1970-01-01T05:00:00.000Z', '-5'],
      ['1970-01-01T00:00:00.000Z', e18('20.4').toString()],
    ])
    const first = (await exchange.get(alice, `${hours}&limit=2&market_id=1`)).body
    const rest = (await exchange.get(alice, `${hours}&limit=2&market_id=1&cursor=${first.next_cursor}`)).body
    expect([...first.pnl, ...rest.pnl]).to.deep.equal(series)
    expect(rest.next_cursor).to.equal(null)
    const ranged = `${hours}&from=1970-01-01T05:00:00Z&to=1970-01-01T07:00:00Z`
    expect((await exchange.get(alice, ranged)).body.pnl).to.deep.equal([series[1]])
    expect((await exchange.get(alice, `${hours}&market_id=2`)).body.pnl).to.deep.equal([])
    await append(exchange, { ...end, rollback: true })
    await exchange.project()
    const opened = (await exchange.get(alice, `${path}?status=open`)).body
    expect(opened.next_cursor).to.equal(null)
    expect(opened.positions).to.have.length(1)
    expect(opened.positions[0]).to.include({
      ...{
        side: 'LONG',
        opened_quantity_e18_raw: e18('0.01').toString(),
        average_exit_price: 0,
        ending: null,
      },
      ...{ realized_pnl: 0, fees_e18_raw: '5', opened_at: '1970-01-01T05:00:00.000Z', closed_at: null },
    })
    expect((await exchange.get(alice, `${path}?status=open&market_id=2`)).body.positions).to.deep.equal([])
    await append(exchange, { ...open, rollback: true })
    await exchange.project()
    expect((await exchange.get(alice, `${path}?status=open`)).body.positions).to.deep.equal([])
    expect((await exchange.get(alice, profits)).body).to.deep.equal(body)
  })

  it('when the cursor is not of this list, it is refused', async () => {
    const { status, body } = await exchange.get(alice, `${path}?cursor=nonsense`)
    expect([status, body.details.code]).to.deep.equal([400, 'INVALID_CURSOR'])
  })

  it('when the event that closed a position leaves the chain, the position is no longer in it', async () => {
    const row = settled({ user: alice, delta: 10, entryDelta: '1' })
    const end = settled({ user: alice, delta: -10, entryDelta: '-1' })
    const before = (await exchange.get(alice, path)).body
    await append(exchange, row, end)
    await exchange.project()
    expect((await exchange.get(alice, path)).body.positions).to.have.length(3)
    await append(exchange, { ...end, rollback: true }, { ...row, rollback: true })
    await exchange.project()
    expect((await exchange.get(alice, path)).body).to.deep.equal(before)
  })

  it('when an account has closed many positions, a page of a range of times reads few database pages', async () => {
    await sql`
      insert into read.position_states
      select user_id, 1 + n % 2, 1000 + n, event, side, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1, n, 'trade', n
      from generate_series(10000, 30000) n, (select * from read.position_states limit 1) one
    `.execute(exchange.db)
    await sql`analyze`.execute(exchange.db)
    const explained = createExplainedDb(exchange.url)
    const page = { from: 15_000, to: 19_000, limit: 20, after: null }
    for (const marketId of [undefined, 1])
      expect(await closedPositions(explained.db, alice.userId, { ...page, marketId })).to.have.length(21)
    await sql`
      insert into read.realized_profits
      select ${alice.userId}, 3600000, n * 3600000::bigint, market, 1, 1, 1 from generate_series(1, 5000) n, generate_series(2, 11) market
    `.execute(exchange.db)
    await sql`analyze`.execute(exchange.db)
    const hours = { interval: '1h', limit: 20, from: null, to: (2_000 * 3_600_000) as Millis } as const
    for (const marketId of [undefined, 3])
      expect(await profitsOfUser(explained.db, alice.userId, { ...hours, marketId })).to.have.length(21)
    const statements = explained.drain()
    await explained.db.destroy()
    // The profits of 21 hours in ten markets are 210 rows.
    expect(statements.filter(({ text, pages }) => pages > (text.includes('sum(') ? 230 : 60))).to.deep.equal(
      [],
    )
  })
})

/** `GET /v0/account/equity`: the caller's equity by hour and day. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { equityPage } from '../../../api/account-equity/series.ts'
import type { PartSettled } from '../../../domain/journal/batch-rows.ts'
import { ACCOUNTS_SHARD, type JournalRow } from '../../../domain/journal/journal-row.ts'
import type { Millis } from '../../../domain/units.ts'
import { createExplainedDb } from '../../support/explained-db.ts'
import { e18 } from '../../support/markets.ts'
import { appendRows, lockShard } from '../../support/rows/journal.ts'
import {
  codeOf,
  createUser,
  type ExchangeFixture,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { append } from '../support/trade-rows.ts'

const PATH = '/v0/account/equity'
const HOUR = 3_600_000
const DAY = 24 * HOUR
/** Midnight of the day before yesterday, so that hours are within reach. */
const START = Math.floor(Date.now() / DAY) * DAY - 2 * DAY
const iso = (at: number): string => new Date(at).toISOString()

let parts = 0

/** A fill of 1 per 1,000 steps that only the chain has, with full margin. */
function traded(user: User, at: number, { delta, entry, realized = '0', fee = '0' }: Traded): PartSettled {
  const batch_id = ++parts
  const margin = delta > 0 ? entry : -entry
  return {
    kind: 'part_settled',
    rollback: false,
    batch_id,
    part: 1,
    parts: 1,
    action_id: batch_id,
    funding_index: '0',
    price: 1000,
    block: batch_id,
    tx_hash: `0xe${batch_id}`,
    log_index: 0,
    at,
    fills: [
      {
        fill_id: `1-e${batch_id}`,
        matched: false,
        order_id: `1-${user.address}-e${batch_id}`,
        ...{
          user_id: user.userId,
          side: delta > 0 ? 'LONG' : 'SHORT',
          steps: Math.abs(delta),
          taker_steps: 0,
        },
        fee: `${e18(fee)}`,
        free_delta: `${-e18(`${margin}`) + e18(realized) - e18(fee)}`,
        from_pending: '0',
        realized_pnl: `${e18(realized)}`,
        held: '0',
      },
    ],
    positions: [
      {
        user_id: user.userId,
        size_delta: delta,
        entry_notional_delta: `${e18(`${margin}`)}`,
        folded_margin_delta: `${e18(`${margin}`)}`,
        leverage_before: 1,
        leverage_after: 1,
      },
    ],
    orders: [],
    position_closed: [],
  }
}

interface Traded {
  readonly delta: number
  /** Entry value of the steps. */
  readonly entry: number
  readonly realized?: string
  readonly fee?: string
}

const prices = (at: number, mark: string): JournalRow => ({
  kind: 'prices_updated',
  at,
  oracle_at: at,
  oracle_price: `${e18('100')}`,
  mark_price: `${e18(mark)}`,
})

describe('GET /v0/account/equity', function () {
  this.timeout(60_000)
  let exchange: ExchangeFixture
  let alice: User

  const moveLedger = (row: JournalRow) =>
    exchange.db
      .transaction()
      .execute(async (tx) => appendRows(tx, await lockShard(tx, ACCOUNTS_SHARD), [row]))
  const deposit = (user: User, at: number, amount: string): JournalRow => ({
    kind: 'balance_changed',
    cause: 'deposit',
    rollback: false,
    user_id: user.userId,
    ...{
      free_delta: `${e18(amount)}`,
      pending_withdrawal_delta: '0',
      block: 1,
      tx_hash: `0xd${at}`,
      log_index: 0,
      at,
    },
  })
  const read = async (user: User, query = '') => {
    const answer = await exchange.get(user, `${PATH}?${query}`)
    expect(answer.status, JSON.stringify(answer.body)).to.equal(200)
    return answer.body
  }
  /** Points as start, equity, profit at the mark and flows, oldest first. */
  const shown = (points: readonly Record<string, unknown>[]) =>
    [...points]
      .reverse()
      .map(({ start, equity, unrealized_pnl, deposits, withdrawals, realized_pnl, fees, funding }) => [
        ...[start, equity, unrealized_pnl, deposits, withdrawals, realized_pnl, fees, funding],
      ])

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice', '0')
    await moveLedger(deposit(alice, START + 2 * HOUR, '1000'))
    await append(
      exchange,
      prices(START + 3 * HOUR, '100'),
      traded(alice, START + 3 * HOUR + 500, { delta: 1000, entry: 100, fee: '1' }),
      prices(START + 4 * HOUR, '107'),
      prices(START + 6 * HOUR, '90'),
      // Mined in the second in which the part before was matched, half a second after it.
      traded(alice, START + 3 * HOUR, { delta: 1000, entry: 120 }),
      traded(alice, START + DAY + HOUR, { delta: -2000, entry: 220, realized: '-40', fee: '2' }),
    )
    await exchange.project()
  })
  after(() => exchange.stop())

  const range = `interval=1h&from=${iso(START)}&to=${iso(START + 9 * HOUR)}`

  it('when hours without events follow, the position is valued at the mark of each of them', async () => {
    const { interval, equity, next_cursor } = await read(alice, range)
    expect([interval, next_cursor]).to.deep.equal(['1h', null])
    expect(shown(equity)).to.deep.equal([
      [iso(START + 2 * HOUR), 1000, 0, 1000, 0, 0, 0, 0],
      [iso(START + 3 * HOUR), 979, -20, 0, 0, 0, 1, 0],
      [iso(START + 4 * HOUR), 993, -6, 0, 0, 0, 0, 0],
      [iso(START + 5 * HOUR), 993, -6, 0, 0, 0, 0, 0],
      [iso(START + 6 * HOUR), 959, -40, 0, 0, 0, 0, 0],
      [iso(START + 7 * HOUR), 959, -40, 0, 0, 0, 0, 0],
      [iso(START + 8 * HOUR), 959, -40, 0, 0, 0, 0, 0],
    ])
    expect(equity[0].valued_at).to.equal(iso(START + 9 * HOUR))
  })

  it('when it is read by day, the day in progress is valued now and equals the balance', async () => {
    const { interval, equity } = await read(alice)
    expect(interval).to.equal('1d')
    expect(shown(equity)).to.deep.equal([
      [iso(START), 959, -40, 1000, 0, 0, 1, 0],
      [iso(START + DAY), 957, 0, 0, 0, -40, 2, 0],
      [iso(START + 2 * DAY), 957, 0, 0, 0, 0, 0, 0],
    ])
    expect(Date.parse(equity[0].valued_at)).to.be.within(Date.now() - 60_000, Date.now() + 1_000)
    const { balance } = (await exchange.get(alice, `/v0/balance/${alice.userId}/margin`)).body
    expect(equity[0].balance_e18_raw).to.equal(balance.total_e18_raw)
  })

  it('when it is read in pages, they are the whole list', async () => {
    const whole = (await read(alice, range)).equity
    const pages: unknown[] = []
    let query = `${range}&limit=3`
    for (;;) {
      const { equity, next_cursor } = await read(alice, query)
      pages.push(...equity)
      if (next_cursor === null) break
      query = `interval=1h&from=${iso(START)}&limit=3&cursor=${next_cursor}`
    }
    expect(pages).to.deep.equal(whole)
  })

  it('when it is read for one market, deposits do not count; a market without a position has no points', async () => {
    const { equity } = await read(alice, 'market_id=1')
    expect(shown(equity)).to.deep.equal([
      [iso(START), -41, -40, 0, 0, 0, 1, 0],
      [iso(START + DAY), -43, 0, 0, 0, -40, 2, 0],
      [iso(START + 2 * DAY), -43, 0, 0, 0, 0, 0, 0],
    ])
    expect((await read(alice, 'market_id=2')).equity).to.deep.equal([])
    expect((await read(alice, 'market_id=9007199254740991')).equity).to.deep.equal([])
  })

  it('when an account has only deposits, the list begins with the first; without any it is empty', async () => {
    const bob = await createUser(exchange.db, 'bob', '0')
    await exchange.project()
    expect((await read(bob)).equity).to.deep.equal([])
    const row = deposit(bob, START + DAY + 1, '5')
    await moveLedger(row)
    await exchange.project()
    expect(shown((await read(bob)).equity)).to.deep.equal([
      [iso(START + DAY), 5, 0, 5, 0, 0, 0, 0],
      [iso(START + 2 * DAY), 5, 0, 0, 0, 0, 0, 0],
    ])
    await moveLedger({ ...row, rollback: true } as JournalRow)
    await exchange.project()
    expect((await read(bob)).equity, 'after a fork').to.deep.equal([])
  })

  it('when a market has ended, an open position is worth its final price from then on', async () => {
    const carol = await createUser(exchange.db, 'carol', '0')
    await moveLedger(deposit(carol, START + HOUR, '500'))
    await append(exchange, traded(carol, START + HOUR, { delta: 1000, entry: 100 }))
    const set = (ended: string | null) =>
      exchange.db.updateTable('markets').set({ ended }).where('market_id', '=', 1).execute()
    const end = {
      how: 'frozen',
      price: `${e18('130')}`,
      price_at: START,
      ended_at: START + DAY,
      pool: '0',
      deficit: '0',
    }
    await set(JSON.stringify({ ...end, haircut: null }))
    await exchange.project()
    const points = shown((await read(carol)).equity)
    await set(null)
    expect(points).to.deep.equal([
      [iso(START), 530, 30, 500, 0, 0, 0, 0],
      [iso(START + DAY), 530, 30, 0, 0, 0, 0, 0],
      [iso(START + 2 * DAY), 530, 30, 0, 0, 0, 0, 0],
    ])
  })

  it('when the account is as old as the exchange, hours reach back 730 days and days to its beginning', async () => {
    const dave = await createUser(exchange.db, 'dave', '0')
    await moveLedger(deposit(dave, 1, '7'))
    await exchange.project()
    const old = await read(dave, `interval=1h&to=${iso(START - 700 * DAY)}&limit=1000`)
    expect(old.next_cursor).to.equal(null)
    expect(old.equity.at(-1).start >= iso(START - 729 * DAY), old.equity.at(-1).start).to.equal(true)
    expect(old.equity[0].equity).to.equal(7)
    expect((await read(dave, `interval=1h&to=${iso(DAY)}`)).equity).to.deep.equal([])
    const first = await read(dave, `to=${iso(DAY)}`)
    expect(shown(first.equity)).to.deep.equal([[iso(0), 7, 0, 7, 0, 0, 0, 0]])
    expect((await read(dave, 'limit=1000')).equity).to.have.length(1000)
  })

  it('when the query is not valid, it is 400 with field, expected and received', async () => {
    const { next_cursor } = await read(alice, `${range}&limit=1`)
    for (const [query, code, field] of [
      ['interval=1m', 'INVALID_FIELD', 'interval'],
      ['interval=hour', 'INVALID_FIELD', 'interval'],
      ['market_id=0', 'INVALID_FIELD', 'market_id'],
      ['market_id=one', 'INVALID_FIELD', 'market_id'],
      ['from=yesterday', 'INVALID_FIELD', 'from'],
      ['to=2026-13-01T00:00:00Z', 'INVALID_FIELD', 'to'],
      ['limit=0', 'INVALID_FIELD', 'limit'],
      ['limit=1001', 'INVALID_FIELD', 'limit'],
      ['cursor=nonsense', 'INVALID_CURSOR', 'cursor'],
      [`interval=1d&cursor=${next_cursor}`, 'INVALID_CURSOR', 'cursor'],
      [`interval=1h&market_id=1&cursor=${next_cursor}`, 'INVALID_CURSOR', 'cursor'],
    ]) {
      const { status, body } = await exchange.get(alice, `${PATH}?${query}`)
      expect([status, body.details.code, body.details.field], query).to.deep.equal([400, code, field])
      expect(body.details).to.include.keys('expected', 'received')
    }
    expect(codeOf(await exchange.get(null, PATH))[0]).to.equal(401)
  })

  it('when an account has traded in many markets for years, a page reads a bounded number of database pages', async () => {
    const user = 777_777
    await sql`
      insert into read.position_states
      select ${user}, m, n, 'e', 'LONG', 1000, 1, 1, 0, 0, 0, 100, 0, 0, 0, 0, 1, null, null, n * ${HOUR / 2}::bigint
      from generate_series(1, 3) m, generate_series(1, 20000) n
    `.execute(exchange.db)
    await sql`
      insert into read.realized_profits
      select ${user}, s, n * s, m, 1, 1, 1 from generate_series(1, 3) m, unnest(array[${HOUR}, ${DAY}]::bigint[]) s,
        lateral generate_series(0, 10000 * ${HOUR}::bigint / s) n
    `.execute(exchange.db)
    await sql`
      insert into read.cash_flows
      select ${user}, s, n * s, 1, 0 from unnest(array[${HOUR}, ${DAY}]::bigint[]) s, lateral generate_series(0, 10000 * ${HOUR}::bigint / s) n
    `.execute(exchange.db)
    await sql`analyze`.execute(exchange.db)
    const explained = createExplainedDb(exchange.url)
    const now = (10_000 * HOUR + 1) as Millis
    const options = { interval: '1h', from: null, to: (5_000 * HOUR) as Millis, limit: 50, now } as const
    const page = await equityPage(explained.db, { userId: user, marketId: undefined }, options)
    const statements = explained.drain()
    await explained.db.destroy()
    expect(page.positions).to.have.length(3 * 51)
    // At most some look-ups of a few pages per interval and market, and a row per day and market before them.
    expect(statements.map(({ pages }) => pages).filter((pages) => pages > 3 * 51 * 12)).to.deep.equal([])
  })
})

/** `GET /v0/risk/:market_id`, and the risk of a position: prices of its liquidation and bankruptcy, and its lights. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { readClock } from '../../../db/clock.ts'
import { storeRanks } from '../../../db/deleveraging-ranks.ts'
import type { PositionChange } from '../../../domain/journal/batch-rows.ts'
import type { JournalRow, PositionsMoved } from '../../../domain/journal/journal-row.ts'
import type { FundingIndex, Millis, Price } from '../../../domain/units.ts'
import { e18, perpetual } from '../../support/markets.ts'
import { appendRows, lockShard } from '../../support/rows/journal.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'

const GRACE_MS = 600_000

describe('the risk of a market and of a position', () => {
  let exchange: ExchangeFixture
  let alice: User
  let bob: User
  let backstop: User

  const mined = (number: number) => ({
    ...{ rollback: false, block: number, tx_hash: `0x${number}`, log_index: number, at: number * 1_000 },
  })
  const change = (user: User, steps: number, entry: string, margin: string): PositionChange => ({
    ...{ user_id: user.userId, size_delta: steps, leverage_before: 0, leverage_after: 5 },
    ...{ entry_notional_delta: `${e18(entry)}`, folded_margin_delta: `${e18(margin)}` },
  })
  const moved = (fields: Partial<PositionsMoved>): JournalRow => ({
    ...{ kind: 'positions_moved', cause: 'inherited', funding_index: '0', positions: [], balances: [] },
    ...{ ...mined(2), ...fields },
  })
  const append = (rows: readonly JournalRow[]) =>
    exchange.db.transaction().execute(async (tx) => {
      await appendRows(tx, await lockShard(tx, 'm1'), rows)
    })
  const risk = async (market = 1) => (await exchange.get(null, `/v0/risk/${market}`)).body

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    bob = await createUser(exchange.db, 'bob')
    backstop = await createUser(exchange.db, 'backstop', '500')
    await append([
      {
        kind: 'prices_updated',
        oracle_price: `${e18('100')}`,
        oracle_at: 1,
        mark_price: `${e18('100')}`,
        at: 1,
      },
      {
        ...{
          kind: 'part_settled',
          batch_id: 1,
          part: 1,
          parts: 1,
          action_id: 1,
          price: 1,
          funding_index: '0',
        },
        ...{ fills: [], orders: [], position_closed: [], ...mined(1) },
        positions: [change(alice, 3_000, '330', '66'), change(bob, -3_000, '330', '66')],
      },
      moved({
        ...{ action_id: 2, account: alice.userId, oracle_price: `${e18('95')}`, oracle_at: 2 },
        positions: [change(alice, -1_000, '-110', '-22'), change(backstop, 1_000, '110', '25')],
        balances: [{ user_id: backstop.userId, free_delta: `${-e18('3')}` }],
      }),
      {
        ...{
          kind: 'inheritance_failed',
          action_id: 3,
          ...mined(3),
          account: alice.address,
          reason: 'CAP_EXCEEDED',
        },
        ...{ needed: '2', available: '1' },
      },
    ])
    await exchange.project()
  })
  after(() => exchange.stop())

  it('when a market has no backstop and no pause, its open interest and sums are shown, and both are null', async () => {
    const body = await risk()
    expect(body).to.include({
      market_id: 1,
      symbol: 'BTC-PERP',
      backstop: null,
      liquidation_paused_until: null,
    })
    expect(body).to.include({
      open_interest: 3,
      open_interest_e18_raw: `${e18('3')}`,
      open_interest_notional: 300,
    })
    expect(body.inheritances).to.deep.equal({
      count: 1,
      failed: 1,
      quantity: 1,
      quantity_e18_raw: `${e18('1')}`,
    })
    expect(body.deleveragings).to.include({ count: 0, quantity: 0, notional: 0, payouts: 0 })
    expect(body.deficits).to.include({ count: 0, reported: 0, covered: 0 })
    expect(body.running_liquidations).to.equal(0)
    const running = {
      market_id: 1,
      user_id: alice.userId,
      number: 5,
      stage: 'closing',
      start_size: 9,
      widenings: 0,
    }
    const rest = { attempts: 0, retry_at: 0, seen_seq: 5, resting: 0, started_at: 1 }
    await sql`
      insert into liquidations select * from jsonb_populate_record(null::liquidations, ${JSON.stringify({ ...running, ...rest })}::jsonb)
    `.execute(exchange.db)
    expect((await risk()).running_liquidations).to.equal(1)
  })

  it('when positions are deleveraged and deficits covered, it counts them, and a fork takes them back', async () => {
    const rows = [
      moved({
        ...{ cause: 'deleveraged', account: alice.userId },
        positions: [change(bob, 500, '-55', '-11'), change(alice, -500, '-55', '-11')],
        balances: [{ user_id: bob.userId, free_delta: `${e18('17')}` }],
      }),
      moved({ cause: 'insolvency_reported', account: alice.userId, deficit: `${e18('7')}` }),
      moved({
        cause: 'deficit_covered',
        balances: [{ user_id: backstop.userId, free_delta: `${-e18('2')}` }],
      }),
    ]
    await append(rows)
    await exchange.project()
    const body = await risk()
    // A long of 0.5 from 110 with a margin of 22 per unit is bankrupt at 88.
    expect(body.deleveragings).to.include({ count: 1, quantity: 0.5, notional: 44, payouts: 17 })
    expect(body.deficits).to.include({ count: 1, reported: 7, covered: 2 })
    expect(body.open_interest).to.equal(2.5)
    await append(rows.toReversed().map((row) => ({ ...row, rollback: true }) as JournalRow))
    await exchange.project()
    const back = await risk()
    expect(back.deleveragings).to.include({ count: 0, quantity: 0, notional: 0, payouts: 0 })
    expect(back.deficits).to.include({ count: 0, reported: 0, covered: 0 })
    expect(back.open_interest).to.equal(3)
  })

  it('when a market has a backstop, its capacity, use, position and balance are shown', async () => {
    const columns = { backstop: backstop.address, backstop_cap: e18('150') }
    await exchange.db.updateTable('markets').set(columns).where('market_id', '=', 1).execute()
    const { backstop: found } = await risk()
    expect(found).to.include({
      capacity: 150,
      used: 100,
      available: 50,
      size: 1,
      margin: 25,
      free_balance: 497,
    })
    expect(found).to.include({ margin_ratio: 0.15, margin_ratio_e18_raw: `${e18('0.15')}` })
    expect(JSON.stringify(await risk())).to.not.include(backstop.address)
  })

  it('when the bank was paused, liquidations are shown as paused until its grace is over', async () => {
    const pauseUntil = (second: number) =>
      exchange.db.updateTable('chain_progress').set({ bank_pause_ends_at: second }).execute()
    const second = Math.floor((await readClock(exchange.db)) / 1_000)
    await pauseUntil(second)
    const until = new Date(second * 1_000 + GRACE_MS).toISOString()
    expect((await risk()).liquidation_paused_until).to.equal(until)
    expect((await risk(2)).liquidation_paused_until).to.equal(until)
    await pauseUntil(second - GRACE_MS / 1_000)
    expect((await risk()).liquidation_paused_until).to.equal(null)
  })

  it('when the market is unknown or has no price, the first is rejected and the second has no notionals', async () => {
    const unknown = await exchange.get(null, '/v0/risk/77')
    expect([unknown.status, unknown.body.details.code]).to.deep.equal([404, 'MARKET_NOT_FOUND'])
    expect(await risk(2)).to.include({ oracle_price: null, open_interest: 0, open_interest_notional: null })
  })

  describe('of a position', () => {
    const positionOf = async (user: User) =>
      (await exchange.get(user, `/v0/positions/by-user/${user.userId}`)).body.positions[0]
    const rank = (at: number, longs: readonly bigint[] = [], shorts: readonly bigint[] = []) =>
      exchange.db.transaction().execute(async (tx) => {
        const basis = { oracle: e18('100') as Price, index: 0n as FundingIndex }
        await storeRanks(tx, perpetual.marketId, { ...basis, longs, shorts }, at as Millis)
      })

    it('when an account has a position, it sees its bankruptcy price beside the price of its liquidation', async () => {
      const long = await positionOf(alice)
      // 2 from 110 with a margin of 44; at 88 nothing of it is left.
      expect(long).to.include({
        bankruptcy_price: 88,
        bankruptcy_price_e18_raw: `${e18('88')}`,
        margin_ratio: 0.12,
      })
      expect(long.liquidation_price).to.be.greaterThan(88)
      const short = await positionOf(bob)
      expect(short).to.include({ bankruptcy_price: 132 })
      expect(short.liquidation_price).to.be.lessThan(132)
    })

    it('when ranks are known, a profitable position has the lights of its fifth, and another one has none', async () => {
      const now = await readClock(exchange.db)
      // Profit 30 of 330, notional 300 of equity 96.
      const score = ((e18('30') * e18('1')) / e18('330')) * 3n
      await rank(now, [], [score * 3n, score * 2n, score / 2n, score / 4n])
      expect(await positionOf(bob)).to.include({ adl_rank: 3 })
      expect(await positionOf(alice)).to.include({ adl_rank: null })
      await rank(now)
      expect(await positionOf(bob)).to.include({ adl_rank: 5 })
    })

    it('when ranks are older than a minute, no position has lights', async () => {
      await rank((await readClock(exchange.db)) - 61_000)
      expect(await positionOf(bob)).to.include({ adl_rank: null })
    })

    it('when the market is closed, no position can be liquidated; when it has ended, positions are worth the final price', async () => {
      const set = (columns: { readonly settling_at?: number; readonly ended?: string | null }) =>
        exchange.db.updateTable('markets').set(columns).where('market_id', '=', 1).execute()
      await rank(await readClock(exchange.db))
      await set({ settling_at: 1 })
      const none = { liquidation_price: null, bankruptcy_price: null, adl_rank: null }
      expect(await positionOf(bob)).to.include({ ...none, margin_ratio: 0.32, unrealized_pnl: 30 })
      const end = {
        how: 'finalized',
        price: `${e18('105')}`,
        price_at: 5,
        ended_at: 6,
        pool: '0',
        deficit: '0',
      }
      await set({ ended: JSON.stringify({ ...end, haircut: null }) })
      // 3 from 110 with a margin of 66.
      expect(await positionOf(bob)).to.include({
        ...none,
        oracle_price: 105,
        mark_price: 105,
        unrealized_pnl: 15,
      })
      expect(await risk()).to.include({ oracle_price: 105, open_interest_notional: 315 })
      await set({ settling_at: 0, ended: null })
    })
  })
})

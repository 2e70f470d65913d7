/** `GET /v0/liquidations`, `GET /v0/account/liquidations`, and forced fills: what the public sees, and what the accounts concerned see. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { minedLiquidations, stepsOfUser } from '../../../api/liquidations/query.ts'
import { riskOfMarket } from '../../../api/risk/query.ts'
import type { FillSettled, PositionChange } from '../../../domain/journal/batch-rows.ts'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'
import type { LiquidationChanged, LiquidationEvidence } from '../../../domain/journal/liquidation-row.ts'
import { createExplainedDb } from '../../support/explained-db.ts'
import { e18 } from '../../support/markets.ts'
import { appendRows, lockShard } from '../../support/rows/journal.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'

const PUBLIC = '/v0/liquidations'
const OWN = '/v0/account/liquidations'
const ONE = e18('1')

describe('liquidations', function () {
  this.timeout(60_000)
  let exchange: ExchangeFixture
  let alice: User
  let bob: User
  let carol: User

  const mined = (number: number) => ({
    ...{ rollback: false, block: number, tx_hash: `0x0${number}`, log_index: number, at: number * 1_000 },
  })
  const change = (user: User, steps: number, entry: bigint, margin: bigint): PositionChange => ({
    ...{ user_id: user.userId, size_delta: steps, leverage_before: 5, leverage_after: 5 },
    ...{ entry_notional_delta: `${entry}`, folded_margin_delta: `${margin}` },
  })
  const append = (rows: readonly JournalRow[], shard = 'm1') =>
    exchange.db.transaction().execute(async (tx) => {
      await appendRows(tx, await lockShard(tx, shard), rows)
    })

  const ORDER = '1-2'
  const placed = (): JournalRow => ({
    ...{ kind: 'order_placed', order_id: ORDER, user_id: alice.userId, maker: alice.address, signer: null },
    ...{
      hash: '0xf0',
      salt: 1,
      side: 'SHORT',
      type: 'MARKET',
      price: 0,
      quantity: 300,
      trigger: 0,
      leverage: 1,
    },
    ...{ reduce_only: true, expiration: 0, alive_until: 0, status: 'OPEN', accepted_at: 900, openable: 0 },
    ...{ reserved: '0', reserved_price: 0, forced: true },
  })
  const matched = {
    fill_id: '1-1-1-2',
    order_id: ORDER,
    part: 1,
    side: 'SHORT',
    steps: 300,
    taker_steps: 300,
  } as const
  const cleared = (): JournalRow => ({
    ...{ kind: 'batch_cleared', batch_id: 1, as_of: 950, oracle_price: `${e18('90')}`, oracle_at: 940 },
    ...{ lo: 800, hi: 1000, price: 890, volume: 300, demand: 300, supply: 300, rule: 'VOLUME', parts: 1 },
    ...{ fills: [{ ...matched, user_id: alice.userId, held: '0' }], closing: [] },
  })
  const fill = (): FillSettled => ({
    ...{ ...matched, matched: true, forced: true, user_id: alice.userId, fee: '5', free_delta: `${ONE}` },
    ...{ from_pending: '0', realized_pnl: `${-e18('3')}`, held: '0' },
  })
  const settled = (): JournalRow => ({
    ...{ kind: 'part_settled', batch_id: 1, part: 1, parts: 1, action_id: 1, price: 890, funding_index: '0' },
    ...{ ...mined(1), fills: [fill()], orders: [], position_closed: [] },
    positions: [change(alice, -300, -e18('30'), -e18('4'))],
  })
  const inherited = (): JournalRow => ({
    ...{
      kind: 'positions_moved',
      cause: 'inherited',
      action_id: 2,
      funding_index: '0',
      account: alice.userId,
    },
    ...{ oracle_price: `${e18('88')}`, oracle_at: 1_500, ...mined(2), balances: [] },
    positions: [change(alice, -500, -e18('50'), -e18('6')), change(carol, 500, e18('50'), e18('6'))],
  })
  const deleveraged = (): JournalRow => ({
    ...{
      kind: 'positions_moved',
      cause: 'deleveraged',
      action_id: 3,
      funding_index: '0',
      account: alice.userId,
    },
    ...{ oracle_price: `${e18('80')}`, oracle_at: 2_500, ...mined(3), balances: [] },
    positions: [change(bob, 200, -e18('20'), -e18('4')), change(alice, -200, -e18('20'), -e18('3'))],
  })
  const evidence = (legs: LiquidationEvidence['legs']): LiquidationEvidence => ({
    ...{ as_of: 990, oracle_price: `${e18('90')}`, oracle_at: 940, funding_index: '7', size: 1_000 },
    ...{ entry_notional: `${e18('100')}`, margin: `${e18('13')}`, margin_ratio: `${e18('0.02')}` },
    ...{ threshold: `${e18('0.03')}`, legs },
  })
  const step = (
    name: LiquidationChanged['step'],
    fields: Partial<LiquidationChanged> = {},
  ): LiquidationChanged => ({
    ...{
      kind: 'liquidation_changed',
      number: 7,
      user_id: alice.userId,
      step: name,
      reason: 'below_threshold',
    },
    ...{ order_id: null, widenings: 0, queue_no: null, at: 1_000, evidence: evidence([]), ...fields },
  })

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    bob = await createUser(exchange.db, 'bob')
    carol = await createUser(exchange.db, 'carol')
    const legs = [
      { user_id: bob.userId, steps: 150, score: `${e18('3')}` },
      { user_id: carol.userId, steps: 50, score: `${e18('2')}` },
    ]
    await append([
      placed(),
      step('started'),
      step('forced', { order_id: ORDER, at: 1_001 }),
      cleared(),
      settled(),
      inherited(),
      deleveraged(),
      step('deleverage_queued', { queue_no: 9, at: 2_600, reason: 'bankrupt', evidence: evidence(legs) }),
      step('failed', { queue_no: 9, at: 2_700, reason: `CounterpartyRepeated(${bob.address})` }),
      step('ended', { at: 3_000, reason: 'closed', evidence: null }),
    ])
    await append(
      [inherited()].map((row) => ({ ...row, ...mined(2), tx_hash: '0x22', at: 2_500 }) as JournalRow),
      'm2',
    )
    await exchange.project()
  })
  after(() => exchange.stop())

  const list = async (query = '') => {
    const { status, body } = await exchange.get(null, `${PUBLIC}?${query}`)
    expect(status, JSON.stringify(body)).to.equal(200)
    return body.liquidations as Record<string, unknown>[]
  }

  it('when liquidations are listed without a credential, the mined ones have prices and no accounts, newest first', async () => {
    const all = await list('market_id=1')
    expect(all.map(({ kind, side, quantity, price }) => [kind, side, quantity, price])).to.deep.equal([
      // 0.2 from 100 with a margin of 15 each is bankrupt at 85.
      ['deleveraged', 'LONG', 0.2, 85],
      ['inherited', 'LONG', 0.5, null],
      ['forced_fill', 'LONG', 0.3, 89],
    ])
    expect(all[1]).to.include({ notional: 44, oracle_price: 88, oracle_price_at: '1970-01-01T00:00:01.500Z' })
    expect(all[2]).to.include({ notional: 26.7, oracle_price: null, batch_id: 1, part: 1, tx_hash: '0x01' })
    const text = JSON.stringify(all)
    for (const { address } of [alice, bob, carol]) expect(text).to.not.include(address)
    expect(Object.keys(all[2] ?? {}).filter((name) => /user|account|order|maker/.test(name))).to.deep.equal(
      [],
    )
  })

  it('when they are filtered by market or time, only those are listed; an unknown market is rejected', async () => {
    expect(await list()).to.have.length(4)
    expect((await list('market_id=2')).map(({ tx_hash }) => tx_hash)).to.deep.equal(['0x22'])
    const between = 'from=1970-01-01T00:00:02.000Z&to=1970-01-01T00:00:03.000Z'
    expect((await list(between)).map(({ tx_hash }) => tx_hash)).to.deep.equal(['0x22', '0x02'])
    const { status, body } = await exchange.get(null, `${PUBLIC}?market_id=77`)
    expect([status, body.details.code]).to.deep.equal([404, 'MARKET_NOT_FOUND'])
  })

  it('when they are read page by page, each is listed once', async () => {
    const ids: unknown[] = []
    for (let cursor = ''; ; ) {
      const { body } = await exchange.get(null, `${PUBLIC}?limit=1${cursor}`)
      ids.push(...body.liquidations.map(({ liquidation_id }: { liquidation_id: string }) => liquidation_id))
      if (body.next_cursor === null) break
      cursor = `&cursor=${body.next_cursor}`
    }
    expect(ids).to.deep.equal((await list()).map(({ liquidation_id }) => liquidation_id))
    expect(new Set(ids).size).to.equal(4)
  })

  it('when a fill is of a forced order, the owner and the public see that it is forced', async () => {
    const own = await exchange.get(alice, `/v0/fills/by-user/${alice.userId}`)
    expect(own.body.fills[0]).to.include({ order_id: ORDER, forced: true })
    const all = await exchange.get(null, '/v0/fills/by-market/1')
    expect(all.body.fills[0]).to.include({ side: 'SHORT', forced: true })
    const orders = await exchange.get(alice, `/v0/orders/by-user/${alice.userId}`)
    expect(orders.body.orders[0]).to.include({
      order_type: 'MARKET',
      forced: true,
      signer: null,
      reduce_only: true,
    })
    const transactions = await exchange.get(
      alice,
      '/v0/account/transactions?transaction_type=liquidation&market_id=1',
    )
    expect(transactions.body.transactions.map((row: Record<string, unknown>) => row.amount)).to.deep.equal([
      3, 6, 4,
    ])
  })

  it('when the owner lists the steps, each has its evidence, and a deleveraging all of its legs', async () => {
    const { body } = await exchange.get(alice, OWN)
    const steps = body.steps as Record<string, unknown>[]
    expect(steps.map(({ step: name, role, order_id }) => [name, role, order_id])).to.deep.equal([
      ['ended', 'owner', null],
      ['failed', 'owner', null],
      ['deleverage_queued', 'owner', null],
      ['forced', 'owner', ORDER],
      ['started', 'owner', null],
    ])
    expect(new Set(steps.map(({ liquidation_id }) => liquidation_id))).to.deep.equal(new Set(['1-7']))
    expect(steps[0]).to.include({ evidence: null, reason: 'closed' })
    expect(steps[1]).to.include({ reason: 'CounterpartyRepeated' })
    expect(steps[2]?.legs).to.deep.equal([
      { rank: 1, quantity: 0.15, quantity_e18_raw: `${e18('0.15')}`, score: 3, score_e18_raw: `${e18('3')}` },
      { rank: 2, quantity: 0.05, quantity_e18_raw: `${e18('0.05')}`, score: 2, score_e18_raw: `${e18('2')}` },
    ])
    expect(steps[4]?.evidence).to.include({
      ...{
        as_of: '1970-01-01T00:00:00.990Z',
        oracle_price: 90,
        margin_ratio: 0.02,
        threshold: 0.03,
        size: 1,
      },
      ...{ entry_notional: 100, margin: 13, funding_index_e18_raw: '7' },
    })
    const rest = await exchange.get(alice, `${OWN}?limit=3`)
    const last = await exchange.get(alice, `${OWN}?limit=3&cursor=${rest.body.next_cursor}`)
    expect([...rest.body.steps, ...last.body.steps]).to.deep.equal(steps)
  })

  it('when a counterparty lists the steps, it sees its own leg and neither the position nor the other legs', async () => {
    const { body } = await exchange.get(carol, `${OWN}?market_id=1`)
    expect(body.steps).to.have.length(1)
    const [own] = body.steps
    expect(own).to.include({ role: 'counterparty', step: 'deleverage_queued', order_id: null })
    expect(
      own.legs.map(({ rank, quantity }: { rank: number; quantity: number }) => [rank, quantity]),
    ).to.deep.equal([[2, 0.05]])
    expect(own.evidence).to.include({
      oracle_price: 90,
      margin_ratio: 0.02,
      size: null,
      entry_notional: null,
      margin: null,
    })
    expect((await exchange.get(carol, `${OWN}?market_id=2`)).body.steps).to.deep.equal([])
    expect((await exchange.get(null, OWN)).status).to.equal(401)
  })

  it('when a fork takes the blocks back, the liquidations are gone and the decisions stay', async () => {
    const rows = [deleveraged(), inherited(), settled()].map(
      (row) => ({ ...row, rollback: true }) as JournalRow,
    )
    await append(rows)
    await exchange.project()
    expect(await list('market_id=1')).to.deep.equal([])
    expect((await exchange.get(alice, OWN)).body.steps).to.have.length(5)
    const { body } = await exchange.get(alice, `/v0/fills/by-user/${alice.userId}`)
    expect(body.fills[0]).to.include({ forced: true, status: 'RETRYING' })
  })

  it('when a cursor is of another list, or a market does not exist, it is rejected or empty', async () => {
    const { body } = await exchange.get(alice, `${OWN}?limit=1`)
    const other = await exchange.get(null, `${PUBLIC}?cursor=${body.next_cursor}`)
    expect([other.status, other.body.details.code]).to.deep.equal([400, 'INVALID_CURSOR'])
    const far = await exchange.get(alice, `${OWN}?market_id=${Number.MAX_SAFE_INTEGER}`)
    expect([far.status, far.body.steps]).to.deep.equal([200, []])
    const late = await exchange.get(null, `${PUBLIC}?from=9999-12-31T23:59:59.999Z&to=0001-01-01T00:00:00Z`)
    expect([late.status, late.body.liquidations]).to.deep.equal([200, []])
  })

  it('when there have been many liquidations, a page touches few pages of the tables', async () => {
    const { db, url } = exchange
    await sql
      .raw(`
      insert into read.liquidations (id, market_id, kind, side, steps, tx_hash, log_index, block, at)
      select '0xa' || n, 1 + n % 2, 'inherited', 'LONG', 1, '0x', 0, n, n from generate_series(1, 30000) n;
      insert into read.liquidation_steps (id, market_id, number, user_id, step, reason, widenings, at)
      select '1-' || lpad((n + 100)::text, 12, '0'), 1 + n % 2, n, 900 + n % 3, 'started', '', 0, n from generate_series(1, 30000) n;
      insert into read.liquidation_legs
      select '1-' || lpad((n + 100)::text, 12, '0'), p, 1 + n % 2, 900 + (n + 1 + p) % 3, 1, 1, n
      from generate_series(1, 30000) n, generate_series(0, 1) p;
      analyze
    `)
      .execute(db)
    const explained = createExplainedDb(url)
    const after = { at: 15_000, id: '0xa15000' }
    for (const marketId of [undefined, 1, 3]) {
      for (const place of [null, after]) {
        await minedLiquidations(explained.db, { marketId, limit: 20, from: 5_000, to: 20_000, after: place })
        const range = { from: 5_000, to: 20_000 }
        const steps = await stepsOfUser(explained.db, 901, { marketId, limit: 20, ...range, after: place })
        expect(steps.filter(({ at }) => at < range.from || at >= range.to)).to.deep.equal([])
        expect(steps.length).to.equal(marketId === 3 ? 0 : 21)
      }
    }
    await riskOfMarket(explained.db, 1)
    const statements = explained.drain()
    await explained.db.destroy()
    expect(statements).to.have.length(13)
    expect(statements.filter(({ pages }) => pages > 250)).to.deep.equal([])
  })
})

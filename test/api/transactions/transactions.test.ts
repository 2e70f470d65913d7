/** `GET /v0/account/transactions`: deposits, withdrawals and funding payments of the caller. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { transactionsOfUser } from '../../../api/transactions/query.ts'
import { ACCOUNTS_SHARD, type JournalRow } from '../../../domain/journal/journal-row.ts'
import { createExplainedDb } from '../../support/explained-db.ts'
import { appendRows, lockShard } from '../../support/rows/journal.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'

const PATH = '/v0/account/transactions'

const ONE = 10n ** 18n

describe('the transactions of an account', function () {
  this.timeout(60_000)
  let exchange: ExchangeFixture
  let alice: User
  let bob: User

  const mined = (number: number) => ({
    ...{ rollback: false, block: number, tx_hash: `0x${number}`, log_index: number, at: number * 1_000 },
  })
  const change = (user: User, delta: number) => ({
    ...{ user_id: user.userId, size_delta: delta, entry_notional_delta: '0', folded_margin_delta: '0' },
    ...{ leverage_before: 1, leverage_after: 1 },
  })
  const traded = (number: number, index: number, steps: number): JournalRow => ({
    ...{ kind: 'part_settled', batch_id: number, part: 1, parts: 1, action_id: number, price: 1 },
    ...{ funding_index: `${index}`, fills: [], orders: [], position_closed: [] },
    ...{ ...mined(number), positions: [change(alice, steps), change(bob, -steps)] },
  })
  /** Alice inherits 2 steps of Bob's position, with a margin of 30 USDM; she adds 5. */
  const inherited = (number: number, index: number): JournalRow => ({
    ...{ kind: 'positions_moved', cause: 'inherited', action_id: number, funding_index: `${index}` },
    ...{
      ...mined(number),
      account: bob.userId,
      balances: [{ user_id: alice.userId, free_delta: `${-5n * ONE}` }],
    },
    positions: [
      { ...change(bob, 2), folded_margin_delta: `${-30n * ONE + 2n * BigInt(index)}` },
      { ...change(alice, -2), folded_margin_delta: `${35n * ONE - 2n * BigInt(index)}` },
    ],
  })
  const updated = (number: number, index: number): JournalRow => ({
    ...{ kind: 'funding_updated', action_id: number, ...mined(number), as_of: 1, rate: '1', valid_until: 1 },
    ...{ funding_index: `${index}`, oracle_price: '1', oracle_at: 1 },
  })

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    bob = await createUser(exchange.db, 'bob')
    const append = (shard: string, rows: readonly JournalRow[]) =>
      exchange.db.transaction().execute(async (tx) => {
        await appendRows(tx, await lockShard(tx, shard), rows)
      })
    await append('m1', [
      traded(1, 0, 4),
      updated(2, 1_000),
      traded(3, 1_500, -1),
      updated(4, 2_000),
      updated(5, 2_000),
    ])
    await append(ACCOUNTS_SHARD, [
      {
        ...{ kind: 'balance_changed', cause: 'withdrawal_request', user_id: alice.userId, ...mined(6) },
        ...{ free_delta: `${-(10n ** 18n)}`, pending_withdrawal_delta: `${10n ** 18n}` },
      },
    ])
    await exchange.project()
  })
  after(() => exchange.stop())

  async function list(query = ''): Promise<Record<string, unknown>[]> {
    const { status, body } = await exchange.get(alice, `${PATH}?${query}`)
    expect(status, JSON.stringify(body)).to.equal(200)
    return body.transactions
  }

  it('when an account lists its transactions, it gets deposits, withdrawals and payments, newest first', async () => {
    const [deposit, withdrawal, ...payments] = await list()
    expect(deposit).to.include({
      transaction_type: 'deposit',
      amount: 1_000_000,
      available_margin_delta: 1_000_000,
    })
    expect(deposit).to.include({
      asset: 'USDM',
      market_id: null,
      market_symbol: null,
      funding_payment_delta: null,
    })
    expect(withdrawal).to.deep.equal({
      ...{
        id: `0x6-6-${alice.userId}`,
        transaction_type: 'withdrawal',
        amount: 1,
        amount_e18_raw: `${10n ** 18n}`,
      },
      ...{ available_margin_delta: -1, available_margin_delta_e18_raw: `${-(10n ** 18n)}` },
      ...{ funding_payment_delta: null, funding_payment_delta_e18_raw: null, asset: 'USDM', market_id: null },
      ...{
        market_symbol: null,
        tx_hash: '0x6',
        log_index: 6,
        block_number: 6,
        created_at: '1970-01-01T00:00:06.000Z',
      },
    })
    // 4 steps until the first update and the change, then 3.
    expect(
      payments.map((row) => [row.id, row.funding_payment_delta_e18_raw, row.amount_e18_raw]),
    ).to.deep.equal([
      [`1-000000000004-${alice.userId}`, '-1500', '1500'],
      [`1-000000000003-${alice.userId}`, '-2000', '2000'],
      [`1-000000000002-${alice.userId}`, '-4000', '4000'],
    ])
    expect(payments[0]).to.include({ market_id: 1, available_margin_delta_e18_raw: '0', tx_hash: '0x4' })
    expect(payments[0]?.market_symbol).to.be.a('string')
  })

  it('when it filters by type or market, it gets only those', async () => {
    const types = async (query: string) => new Set((await list(query)).map((row) => row.transaction_type))
    expect([...(await types('transaction_type=withdrawal'))]).to.deep.equal(['withdrawal'])
    expect([...(await types('market_id=1'))]).to.deep.equal(['funding_payment'])
    expect(await list('market_id=3')).to.deep.equal([])
    expect(await list('transaction_type=liquidation')).to.deep.equal([])
  })

  it('when it passes the last transaction of a page, it gets those after it, and an empty page at the end', async () => {
    const all = await list()
    const read: Record<string, unknown>[] = []
    for (let cursor = ''; ; ) {
      const page = await list(`limit=2${cursor}`)
      if (page.length === 0) break
      read.push(...page)
      const last = page.at(-1)
      cursor = `&cursor_created_at=${last?.created_at}&cursor_id=${last?.id}`
    }
    expect(read).to.deep.equal(all)
  })

  it('when a position is inherited, both accounts get a liquidation with the change of its margin', async () => {
    const { db } = exchange
    await db.transaction().execute(async (tx) => {
      await appendRows(tx, await lockShard(tx, 'm2'), [inherited(7, 2_000)])
    })
    await exchange.project()
    const liquidations = async (user: User): Promise<Record<string, unknown>[]> =>
      (await exchange.get(user, `${PATH}?transaction_type=liquidation`)).body.transactions
    const [lost, ...others] = await liquidations(bob)
    expect(others).to.deep.equal([])
    expect(lost).to.include({
      ...{ id: `0x7-7-${bob.userId}`, transaction_type: 'liquidation', market_id: 2, tx_hash: '0x7' },
      ...{ amount: 30, available_margin_delta: 0, funding_payment_delta: null },
    })
    const [taken] = await liquidations(alice)
    expect(taken).to.include({ market_id: 2, amount: 35, available_margin_delta: -5 })
  })

  it('when one half of the cursor is missing or no time, the request is rejected', async () => {
    const cases = [
      ['cursor_id=1', 'INVALID_CURSOR', 'cursor_created_at'],
      ['cursor_created_at=1970-01-01T00:00:06.000Z', 'INVALID_CURSOR', 'cursor_id'],
      ['cursor_id=1&cursor_created_at=1970-13-01T00:00:00Z', 'INVALID_CURSOR', 'cursor_created_at'],
      ['cursor_id=1&cursor_created_at=yesterday', 'INVALID_FIELD', 'cursor_created_at'],
      ['transaction_type=gift', 'INVALID_FIELD', 'transaction_type'],
      ['limit=0', 'INVALID_FIELD', 'limit'],
    ] as const
    for (const [query, code, field] of cases) {
      const { status, body } = await exchange.get(alice, `${PATH}?${query}`)
      expect([status, body.details.code, body.details.field], query).to.deep.equal([400, code, field])
    }
  })

  it('when an account has traded for a year, a page touches few pages of the tables', async () => {
    const { db, url } = exchange
    await sql
      .raw(`
      insert into read.funding_indexes (market_id, number, funding_index, previous_index, action_id, tx_hash, log_index, block, at)
      select 3, n, n, n - 1, n * 9, '0x', 0, n, n * 900000::bigint from generate_series(1, 35000) n;
      insert into read.funding_positions values (${bob.userId}, 3, 7, 35000, 35000);
      insert into read.funding_spans
      select '3-' || lpad(n::text, 12, '0') || '-' || ${bob.userId}, ${bob.userId}, 3, 1, n, n, n + n % 2, n % 2 = 1, 1, '0x', 0, n,
        n * 900000::bigint from generate_series(1, 34999) n;
      insert into read.ledger_transactions
      select '0x' || n, ${bob.userId}, 'deposit', null, 1, 1, '0x', 0, n, n * 900000::bigint from generate_series(1, 35000) n;
      insert into read.ledger_transactions
      select '0xb' || n, ${alice.userId}, 'liquidation', 3, 1, 1, '0x', 0, n, n from generate_series(1, 35000) n;
      analyze
    `)
      .execute(db)
    const explained = createExplainedDb(url)
    const places = [null, { at: 17_000 * 900_000, id: '3-000000017000-1' }, { at: 900_000, id: '3' }]
    for (const after of places) {
      for (const filter of [
        {},
        { marketId: 3 },
        { type: 'funding_payment' as const },
        { type: 'deposit' as const },
        { type: 'liquidation' as const },
      ]) {
        await transactionsOfUser(explained.db, bob.userId, { ...filter, limit: 20, after })
      }
    }
    // The account of the backstop: every row is a liquidation in one market.
    for (const filter of [
      { marketId: 2 },
      { type: 'withdrawal' as const },
      { marketId: 2, type: 'liquidation' as const },
    ]) {
      await transactionsOfUser(explained.db, alice.userId, { ...filter, limit: 20, after: null })
    }
    const statements = explained.drain()
    await explained.db.destroy()
    expect(statements).to.have.length(18)
    expect(Math.max(...statements.map(({ pages }) => pages))).to.be.at.most(150)
  })
})

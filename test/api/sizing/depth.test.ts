/** Book and estimates count only the steps of resting orders that can execute. */
import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { e18 } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import {
  createUser,
  type ExchangeFixture,
  type OrderTerms,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { append } from '../support/trade-rows.ts'

describe('the depth that an order meets', () => {
  let exchange: ExchangeFixture
  let taker: User
  let holder: User
  let maker: User
  let placed: { readonly user: User; readonly hash: string }[] = []

  before(async () => {
    exchange = await startExchange()
    taker = await createUser(exchange.db, 'taker')
    maker = await createUser(exchange.db, 'maker')
  })
  after(() => exchange.stop())

  beforeEach(async () => {
    holder = await createUser(exchange.db, `holder ${Math.random()}`)
  })
  afterEach(async () => {
    for (const { user, hash } of placed) await exchange.cancel(user, hash)
    placed = []
  })

  async function rest(user: User, terms: OrderTerms): Promise<void> {
    const { status, body } = await exchange.place(user, terms)
    expect(status, JSON.stringify(body)).to.equal(200)
    placed.push({ user, hash: body.order.order_hash })
  }

  /** Changes the holder's position, in steps of 0.001, on the write side and in the journal. */
  async function move(steps: number): Promise<void> {
    const { userId } = holder
    const notional = e18('0.1') * BigInt(steps)
    const position = { size: steps, entry_notional: notional, folded_margin: notional, leverage: 1 }
    const matched = {
      ...{ matched_size: steps, matched_entry_notional: notional },
      ...{ matched_folded_margin: notional, matched_leverage: 1 },
    }
    await withMirror(exchange.db)
      .insertInto('positions')
      .values({ user_id: userId, market_id: 1, ...position, ...matched })
      .onConflict((conflict) =>
        conflict.columns(['user_id', 'market_id']).doUpdateSet({ size: 0, matched_size: 0 }),
      )
      .execute()
    await append(exchange, {
      ...{
        kind: 'positions_moved',
        cause: 'inherited',
        rollback: false,
        block: 1,
        tx_hash: '0x1',
        log_index: 0,
        at: 1,
      },
      positions: [
        {
          ...{ user_id: userId, size_delta: steps, entry_notional_delta: `${notional}` },
          ...{ folded_margin_delta: `${notional}`, leverage_before: 1, leverage_after: 1 },
        },
      ],
      balances: [],
    })
  }

  async function asks(): Promise<string[]> {
    await exchange.project()
    const { body } = await exchange.get(null, '/v0/orderbook/by-market/1')
    return body.short_levels.map(
      (level: { price: number; quantity: number; order_count: number }) =>
        `${level.quantity} at ${level.price} in ${level.order_count}`,
    )
  }

  async function estimate(user: User, size: number) {
    const { body } = await exchange.send(user, 'POST', '/v0/orders/estimate', {
      ...{ market_id: 1, side: 'LONG', order_type: 'MARKET', leverage: 10, sizing_intent: 'units', size },
    })
    return body
  }

  const fillable = async (user: User, size: number): Promise<number> =>
    (await estimate(user, size)).estimate.fillable_quantity
  const protection = async (user: User): Promise<number> =>
    (await estimate(user, 1)).expected_protection_price
  /** 100.2 × 1.01, rounded down to the tick; 101 if no level is left at 100.2. */
  const PROTECTED_AT_LEVEL = 101.2

  const takeProfit: OrderTerms = { side: 'SHORT', price: '100.2', quantity: '5', reduceOnly: true }

  it('when a reduce-only order exceeds its position, book and estimate count only the position', async () => {
    await move(2_000)
    await rest(holder, takeProfit)
    expect(await asks()).to.deep.equal(['2 at 100.2 in 1'])
    expect(await fillable(taker, 5)).to.equal(2)
  })

  it('when the position of a reduce-only order has closed, neither book nor estimate count it', async () => {
    await move(2_000)
    await rest(holder, takeProfit)
    await move(-2_000)
    expect(await asks()).to.deep.equal([])
    expect(await fillable(taker, 5)).to.equal(0)
  })

  it('when a plain order closes the position at a better limit, a reduce-only order behind it does not count', async () => {
    await move(2_000)
    await rest(holder, takeProfit)
    await rest(holder, { side: 'SHORT', price: '100.1', quantity: '2' })
    expect(await asks()).to.deep.equal(['2 at 100.1 in 1'])
    expect(await fillable(taker, 5)).to.equal(2)
  })

  it('when the account has a reduce-only order, only its executable steps are deducted from the level', async () => {
    await move(2_000)
    await rest(holder, takeProfit)
    await rest(maker, { side: 'SHORT', price: '100.2', quantity: '3' })
    expect(await asks()).to.deep.equal(['5 at 100.2 in 2'])
    expect(await protection(holder)).to.equal(PROTECTED_AT_LEVEL)
    expect(await fillable(taker, 20)).to.equal(5)
  })

  it('when the account has an order of its own before the quotes of others, nothing is fillable, as in the auction', async () => {
    await rest(maker, { side: 'SHORT', price: '100.2', quantity: '3' })
    await rest(holder, { side: 'SHORT', price: '100.1', quantity: '1' })
    await exchange.project()
    expect(await fillable(holder, 20)).to.equal(0)
    expect(await fillable(taker, 20)).to.equal(4)
  })

  it('when an order of the account is not projected yet, no quantity of others is deducted for it', async () => {
    await rest(maker, { side: 'SHORT', price: '100.2', quantity: '3' })
    await asks()
    await rest(taker, { side: 'SHORT', price: '100.2', quantity: '4' })
    expect(await protection(taker)).to.equal(PROTECTED_AT_LEVEL)
    expect(await fillable(taker, 20)).to.equal(3)
  })
})

import { expect } from 'chai'
import { sql } from 'kysely'
import { after, afterEach, before, describe, it } from 'mocha'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { binary, e18, future, perpetual } from '../../support/markets.ts'
import {
  createUser,
  type ExchangeFixture,
  type OrderTerms,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { append, clearedRow } from '../support/trade-rows.ts'

describe('the expected protection price', () => {
  let exchange: ExchangeFixture
  let maker: User
  let taker: User
  before(async () => {
    exchange = await startExchange()
    maker = await createUser(exchange.db, 'maker')
    taker = await createUser(exchange.db, 'taker')
  })
  afterEach(async () => {
    for (const user of [maker, taker]) await exchange.send(user, 'POST', '/v0/orders/cancel/all', {})
    await exchange.project()
  })
  after(() => exchange.stop())

  async function quote(
    user: User,
    side: 'LONG' | 'SHORT',
    price: string,
    quantity = '1',
    market = perpetual,
  ) {
    const { status, body } = await exchange.place(user, { market, side, price, quantity })
    expect(status, JSON.stringify(body)).to.equal(200)
  }

  const market = { type: 'MARKET', quantity: '1' } as const
  const placed = async (terms: OrderTerms) => (await exchange.place(taker, { ...market, ...terms })).body
  const estimated = async (spec: MarketSpec, fields: object) =>
    (
      await exchange.send(taker, 'POST', '/v0/orders/estimate', {
        ...{ market_id: spec.marketId, order_type: 'MARKET', side: 'LONG', sizing_intent: 'units', size: 0 },
        ...fields,
      })
    ).body

  it('when a market buy meets asks, place, validate and estimate show the price of the reference level plus the width', async () => {
    // Five minimum orders are 0.05: reached at the second ask.
    await quote(maker, 'SHORT', '101', '0.04')
    await quote(maker, 'SHORT', '101.5', '0.04')
    await exchange.project()
    // R = min(101.5, 101 × 1.01) = 101.5; 101.5 × 1.01 = 102.515.
    const expected = {
      expected_protection_price: 102.5,
      expected_protection_price_e18_raw: e18('102.5').toString(),
    }
    const { body } = signedBody(taker, market)
    expect((await exchange.send(taker, 'POST', '/v0/orders/validate', body)).body).to.include(expected)
    expect(await estimated(perpetual, {})).to.include(expected)
    expect(await placed({})).to.include(expected)
  })

  it('when a market sell meets no bid, its reference is the oracle price', async () => {
    expect(await placed({ side: 'SHORT' })).to.include({ expected_protection_price: 99 })
    expect(await estimated(perpetual, { side: 'SHORT' })).to.include({ expected_protection_price: 99 })
  })

  it('when the only quotes are those of the account itself, they do not count', async () => {
    await quote(taker, 'SHORT', '104')
    await exchange.project()
    expect(await placed({})).to.include({ expected_protection_price: 101 })
  })

  it('when the order is conditional, the width is three times as large', async () => {
    expect(await placed({ type: 'STOP_MARKET', trigger: '102' })).to.include({
      expected_protection_price: 103,
    })
    expect(await estimated(perpetual, { order_type: 'STOP_MARKET', trigger_price: 102 })).to.include({
      expected_protection_price: 103,
    })
  })

  it('when the market is of another kind, its own width applies', async () => {
    expect(await placed({ market: future })).to.include({ expected_protection_price: 51 })
    expect(await placed({ market: binary })).to.include({ expected_protection_price: 0.53 })
  })

  it('when the order is a limit order, there is none', async () => {
    const none = { expected_protection_price: null, expected_protection_price_e18_raw: null }
    const { body } = signedBody(taker, { price: '99' })
    expect((await exchange.send(taker, 'POST', '/v0/orders/validate', body)).body).to.include(none)
    expect((await exchange.send(taker, 'POST', '/v0/orders', body)).body).to.include(none)
    expect(await estimated(perpetual, { order_type: 'LIMIT', price: 99 })).to.include(none)
  })

  it('when a repeated order still waits for its batch, it is shown, and afterwards it is null', async () => {
    const { body } = signedBody(taker, market)
    await exchange.send(taker, 'POST', '/v0/orders', body)
    const again = await exchange.send(taker, 'POST', '/v0/orders', body)
    expect(again.body).to.include({ is_duplicate: true, expected_protection_price: 101 })

    const ask = await exchange.place(maker, { side: 'SHORT', price: '100' })
    await exchange.db
      .updateTable('orders')
      .set({ settling: 1 })
      .where('order_id', '=', again.body.order.order_id)
      .execute()
    await append(exchange, {
      kind: 'orders_protected',
      ...{
        as_of: 1,
        rule_version: 2,
        oracle_price: '1',
        oracle_at: 1,
        standing_seq: 1,
        price_protection: '1',
      },
      orders: [
        {
          ...{ order_id: again.body.order.order_id, user_id: taker.userId, reference: '1', price: 1011 },
          ...{ best: null, level: null },
        },
      ],
    })
    await append(
      exchange,
      clearedRow({
        ...{ batch: 1, price: 1000, steps: 1 },
        buy: { orderId: again.body.order.order_id, user: taker, status: 'OPEN' },
        sell: { orderId: ask.body.order.order_id, user: maker, status: 'OPEN' },
      }),
    )
    await exchange.project()
    const after = await exchange.send(taker, 'POST', '/v0/orders', body)
    expect(after.body).to.include({ is_duplicate: true, expected_protection_price: null })
    expect(after.body.order).to.include({ protection_price: 101.1 })
    const validated = await exchange.send(taker, 'POST', '/v0/orders/validate', body)
    expect(validated.body).to.include({ is_duplicate: true, expected_protection_price: null })
  })

  it('when the book cannot be read, the placement is answered without it', async () => {
    await sql`alter table read.book_levels rename to hidden_levels`.execute(exchange.db)
    try {
      const { body } = signedBody(taker, market)
      const { status, body: answer } = await exchange.send(taker, 'POST', '/v0/orders', body)
      expect(status, JSON.stringify(answer)).to.equal(200)
      expect(answer.order.status).to.equal('OPEN')
      expect(answer.expected_protection_price).to.equal(null)
    } finally {
      await sql`alter table read.hidden_levels rename to book_levels`.execute(exchange.db)
    }
  })
})

import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { e18, future } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import {
  createUser,
  type ExchangeFixture,
  type OrderTerms,
  setOracle,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { newRequestId, sendBatch } from '../support/place-batch.ts'
import { expectRefusal } from '../support/refusal.ts'

/** A buy at 1.10 × the oracle price of 50 with leverage 5: ratio 0.12, below the requirement of 0.18. */
const BELOW: OrderTerms = { market: future, price: '55', quantity: '0.1', leverage: 5 }
/** 50 × 0.82 / 0.8 = 51.25, rounded down to the tick; at 55: leverage 3 is bounded at 61.5, leverage 4 at 54.67. */
const NEAREST = { nearest_valid: '51', nearest_valid_leverage: 3 }
const REFUSAL = {
  ...{ code: 'MARGIN_REQUIREMENT', field: 'price', received: '55', ...NEAREST },
  expected: 'at most 51 at leverage 5, or a leverage of at most 3',
}
/** A sell at 0.90 × the oracle price: 50 × 1.18 / 1.2 = 49.17, rounded up to the tick. */
const SELL_BELOW: OrderTerms = { ...BELOW, side: 'SHORT', price: '45' }

describe('limit orders below the margin requirement', () => {
  let exchange: ExchangeFixture
  let alice: User
  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
  })
  after(() => exchange.stop())
  afterEach(() => setOracle(exchange.db, future, '50'))

  const validate = (body: unknown) => exchange.send(alice, 'POST', '/v0/orders/validate', body)
  const readById = async (orderId: string) => {
    await exchange.project()
    return (await exchange.get(alice, `/v0/orders/${orderId}`)).body
  }

  describe('when one is placed', () => {
    it('is refused with the nearest price and leverage, and each of them is accepted', async () => {
      const { body } = await expectRefusal(exchange, alice, { when: '', terms: BELOW, code: REFUSAL.code })
      expect(body.details).to.include(REFUSAL)
      for (const change of [{ price: NEAREST.nearest_valid }, { leverage: NEAREST.nearest_valid_leverage }]) {
        const { status } = await exchange.place(alice, { ...BELOW, ...change })
        expect(status).to.equal(200)
      }
      const beyond = [{ price: '51.5' }, { leverage: 4 }]
      for (const change of beyond) {
        await expectRefusal(exchange, alice, { when: '', terms: { ...BELOW, ...change }, code: REFUSAL.code })
      }
    })

    it('is refused on the other side as well', async () => {
      const { body } = await expectRefusal(exchange, alice, {
        when: '',
        terms: SELL_BELOW,
        code: REFUSAL.code,
      })
      expect(body.details).to.include({ field: 'price', nearest_valid: '49.5', nearest_valid_leverage: 3 })
      expect((await exchange.place(alice, { ...SELL_BELOW, price: '49.5' })).status).to.equal(200)
      expect((await exchange.place(alice, { ...SELL_BELOW, leverage: 3 })).status).to.equal(200)
    })

    it('is refused for its opening share only', async () => {
      const bob = await createUser(exchange.db, 'bob')
      const matched = { matched_size: -10, matched_entry_notional: e18('5'), matched_folded_margin: e18('2') }
      await withMirror(exchange.db)
        .insertInto('positions')
        .values({ user_id: bob.userId, market_id: 2, ...matched, matched_leverage: 2 })
        .execute()
      expect((await exchange.place(bob, { ...BELOW, quantity: '0.1' })).status).to.equal(200)
      const { body } = await exchange.place(bob, { ...BELOW, quantity: '0.1' })
      expect(body.details).to.include(REFUSAL)
    })

    it('is accepted while it waits for a trigger', async () => {
      const { status, body } = await exchange.place(alice, { ...BELOW, type: 'STOP_LIMIT', trigger: '52' })
      expect([status, body.order?.status]).to.deep.equal([200, 'PENDING_TRIGGER'])
    })
  })

  it('when one is in a batch, the item is refused in both modes', async () => {
    const orders = () => [BELOW, { ...BELOW, price: '51' }].map((terms) => signedBody(alice, terms).body)
    const each = await sendBatch(exchange, alice, orders())
    expect(each.body).to.include({ accepted: 1, refused: 1 })
    expect(each.body.results[0].error.details).to.include(REFUSAL)
    const together = await sendBatch(exchange, alice, orders(), { mode: 'atomic' })
    expect([together.status, together.body.details.code]).to.deep.equal([400, REFUSAL.code])
    expect(together.body.details).to.include(NEAREST)
  })

  it('when one is validated, the answer is the refusal of a placement', async () => {
    const { status, body } = await validate(signedBody(alice, BELOW).body)
    expect(status).to.equal(400)
    expect(body.details).to.include(REFUSAL)
  })

  it('when a limit sell is validated, reserved_price is its limit, and the fee allowance is the fee at its own price', async () => {
    const { body } = await validate(
      signedBody(alice, { market: future, side: 'SHORT', price: '52', quantity: '1', leverage: 5 }).body,
    )
    // The band ends at 60 now, and at 72 if the oracle price reaches 60; the taker rate is 0.002.
    expect(body).to.include({
      reserved_price: 52,
      margin: 10.4,
      fee_allowance_price: 72,
      fee_allowance: 0.144,
    })
    expect(body).to.include({ reserved_margin: 10.544 })
  })

  it('when one is estimated, it is not accepted, and the refusal names price and leverage', async () => {
    const { body } = await exchange.send(alice, 'POST', '/v0/orders/estimate', {
      ...{ market_id: 2, side: 'LONG', order_type: 'LIMIT', price: 55, leverage: 5 },
      ...{ sizing_intent: 'units', size: 1 },
    })
    expect(body.estimate).to.include({ accepted: false, fillable_quantity: 0 })
    expect(body.estimate.refusal).to.include(REFUSAL)
    expect(body.maximum.quantity).to.equal(0)
    expect(body.maximum.binding).to.include(REFUSAL)
    const byLeverage = body.by_leverage.map((row: { leverage: number; quantity: number }) => [
      row.leverage,
      row.quantity > 0,
    ])
    expect(byLeverage).to.deep.equal([...[1, 2, 3].map((leverage) => [leverage, true]), [5, false]])
  })

  describe('when an accepted order falls below it because the oracle price moved', () => {
    it('shows its effective price in every read, and none once it has ended', async () => {
      const { body: placed } = await exchange.place(alice, { ...BELOW, price: '51' })
      const { order_id, order_hash } = placed.order
      const none = { effective_price: null, effective_price_e18_raw: null }
      expect(placed.order).to.include(none)
      expect(await readById(order_id)).to.include(none)

      await setOracle(exchange.db, future, '48')
      // 48 × 0.82 / 0.8 = 49.2
      const moved = { price: 51, effective_price: 49, effective_price_e18_raw: e18('49').toString() }
      expect(await readById(order_id)).to.include(moved)
      expect((await exchange.get(alice, `/v0/orders/by-hash/${order_hash}`)).body).to.include(moved)
      const list = await exchange.get(alice, `/v0/orders/by-user/${alice.userId}?market_id=2&status=OPEN`)
      expect(list.body.orders.find((order: { order_id: string }) => order.order_id === order_id)).to.include(
        moved,
      )

      await exchange.cancel(alice, order_hash)
      expect(await readById(order_id)).to.include({ status: 'CANCELLED', ...none })
    })

    it('is returned with its effective price when the same signed order is posted again', async () => {
      const { body } = signedBody(alice, { ...BELOW, price: '51' })
      const post = () => exchange.send(alice, 'POST', '/v0/orders', body)
      const first = await post()
      await setOracle(exchange.db, future, '48')
      const again = await post()
      expect(again.status).to.equal(200)
      expect(again.body).to.include({ is_duplicate: true })
      expect(again.body.order).to.include({ order_id: first.body.order.order_id, effective_price: 49 })
      expect((await validate(body)).body).to.include({ valid: true, is_duplicate: true })
      const batch = await sendBatch(exchange, alice, [body])
      expect(batch.body.results[0]).to.deep.include({ is_duplicate: true, order: again.body.order })
    })

    it('is returned as it was accepted when its batch is repeated', async () => {
      const id = newRequestId()
      const orders = [signedBody(alice, { ...BELOW, price: '51' }).body]
      const first = await sendBatch(exchange, alice, orders, { id })
      await setOracle(exchange.db, future, '48')
      const again = await sendBatch(exchange, alice, orders, { id })
      expect(again.body).to.deep.equal({ ...first.body, is_duplicate: true })
    })
  })

  it('when the band has moved below a buy, its effective price is the edge of the band', async () => {
    const { body } = await exchange.place(alice, { ...BELOW, price: '58', leverage: 1 })
    expect(body.order.effective_price).to.equal(null)
    await setOracle(exchange.db, future, '45')
    expect((await readById(body.order.order_id)).effective_price).to.equal(54)
  })

  it('when all steps that an order opens are settling, or it has left the book, it has no effective price', async () => {
    const { body } = await exchange.place(alice, { ...BELOW, price: '51' })
    const { order_id } = body.order
    await setOracle(exchange.db, future, '48')
    expect((await readById(order_id)).effective_price).to.equal(49)
    const set = (fields: { openable?: number; status_reason?: 'POSITION_CLOSED' }) =>
      exchange.db.updateTable('read.orders').set(fields).where('order_id', '=', order_id).execute()
    await set({ openable: 0 })
    expect((await readById(order_id)).effective_price, 'the held reservation is not of the rest').to.equal(
      null,
    )
    await setOracle(exchange.db, future, '40')
    expect((await readById(order_id)).effective_price, 'the edge of the band').to.equal(48)
    await set({ status_reason: 'POSITION_CLOSED' })
    expect((await readById(order_id)).effective_price).to.equal(null)
  })

  it('when an order is a market order or waits for a trigger, it has no effective price', async () => {
    const market = await exchange.place(alice, { market: future, type: 'MARKET', quantity: '0.1' })
    const stop = await exchange.place(alice, { ...BELOW, type: 'STOP_LIMIT', trigger: '52' })
    await setOracle(exchange.db, future, '40')
    for (const { body } of [market, stop]) {
      expect((await readById(body.order.order_id)).effective_price).to.equal(null)
    }
  })
})

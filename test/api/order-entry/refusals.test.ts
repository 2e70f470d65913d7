import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import type { MarketMode } from '../../../domain/market/market.ts'
import { binary, e18, future, perpetual } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import {
  type Answer,
  createUser,
  type ExchangeFixture,
  setOracle,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { expectRefusal, type Refusal } from '../support/refusal.ts'

const FORM: readonly Refusal[] = [
  {
    when: 'the market is unknown',
    body: { market_id: 99 },
    status: 404,
    code: 'MARKET_NOT_FOUND',
    field: 'market_id',
  },
  { when: 'a field is missing', body: { side: undefined }, code: 'MISSING_FIELD', field: 'side' },
  { when: 'a field is unknown', body: { usd_amount: 5 }, code: 'UNKNOWN_FIELD', field: 'usd_amount' },
  {
    when: 'a margin fraction is sent',
    body: { margin_fraction: 1 },
    code: 'UNKNOWN_FIELD',
    field: 'margin_fraction',
  },
  { when: 'the side is invalid', body: { side: 'BUY' }, code: 'INVALID_FIELD', field: 'side' },
  { when: 'a price is a word', body: { price: 'cheap' }, code: 'INVALID_FIELD', field: 'price' },
  { when: 'a price is negative', body: { price: -1 }, code: 'INVALID_FIELD', field: 'price' },
  { when: 'a price is null', body: { price: null }, code: 'INVALID_FIELD', field: 'price' },
  {
    when: 'reduce_only is a string',
    body: { reduce_only: 'true' },
    code: 'INVALID_FIELD',
    field: 'reduce_only',
  },
  { when: 'the salt is a number', body: { salt: 5 }, code: 'INVALID_FIELD', field: 'salt' },
  {
    when: 'the order type is unknown',
    body: { order_type: 'FOK' },
    code: 'ORDER_TYPE_UNKNOWN',
    field: 'order_type',
  },
  {
    when: 'a conditional order has no trigger',
    terms: { type: 'STOP_LIMIT' },
    code: 'TRIGGER_REQUIRED',
    field: 'trigger_price',
  },
  {
    when: 'a trigger is off the tick',
    terms: { type: 'STOP_MARKET', trigger: '100.04' },
    code: 'TICK_SIZE',
    field: 'trigger_price',
    nearest: '100',
  },
  {
    when: 'a take-profit may open a position',
    terms: { type: 'TAKE_PROFIT_MARKET', trigger: '110' },
    code: 'REDUCE_ONLY_REQUIRED',
    field: 'reduce_only',
    nearest: 'true',
  },
  {
    when: 'a stop-loss may open a position',
    terms: { type: 'STOP_LOSS_LIMIT', trigger: '90', side: 'SHORT' },
    code: 'REDUCE_ONLY_REQUIRED',
    field: 'reduce_only',
  },
  {
    when: 'a conditional market order has a price',
    terms: { type: 'STOP_MARKET', trigger: '110', price: '100' },
    code: 'PRICE_NOT_ALLOWED',
    field: 'price',
  },
  {
    when: 'a stop limit is beyond the band around its trigger',
    terms: { type: 'STOP_LIMIT', trigger: '110', price: '115.6' },
    code: 'PRICE_BAND',
    field: 'price',
    nearest: '115.5',
  },
  {
    when: 'signature_type is not 1',
    body: { signature_type: 2 },
    code: 'SIGNATURE_TYPE',
    field: 'signature_type',
  },
  { when: 'a limit order has no price', body: { price: undefined }, code: 'PRICE_REQUIRED', field: 'price' },
  {
    when: 'a market order has a price',
    terms: { type: 'MARKET', price: '100' },
    code: 'PRICE_NOT_ALLOWED',
    field: 'price',
  },
  {
    when: 'a plain order has a trigger',
    body: { trigger_price: 100 },
    code: 'TRIGGER_NOT_ALLOWED',
    field: 'trigger_price',
  },
  {
    when: 'the price is off the tick',
    terms: { price: '100.04' },
    code: 'TICK_SIZE',
    field: 'price',
    nearest: '100',
  },
  {
    when: 'the quantity is off the step',
    terms: { quantity: '1.0005' },
    code: 'STEP_SIZE',
    field: 'quantity',
    nearest: '1',
  },
  {
    when: 'there is no quantity',
    body: { quantity: undefined },
    code: 'QUANTITY_REQUIRED',
    field: 'quantity',
  },
  {
    when: 'the quantities differ',
    body: { quantity_e18_raw: '5' },
    code: 'QUANTITY_MISMATCH',
    field: 'quantity_e18_raw',
  },
  {
    when: 'the quantity is below the minimum',
    terms: { quantity: '0.009' },
    code: 'MIN_ORDER_SIZE',
    field: 'quantity',
    nearest: '0.01',
  },
  {
    when: 'the quantity is above the maximum',
    terms: { quantity: '10000.001' },
    code: 'MAX_ORDER_SIZE',
    field: 'quantity',
    nearest: '10000',
  },
  {
    when: 'the price is below the minimum',
    terms: { price: '0.9' },
    code: 'MIN_ORDER_PRICE',
    field: 'price',
    nearest: '1',
  },
  {
    when: 'a binary price is 1',
    terms: { market: binary, price: '1' },
    code: 'MAX_ORDER_PRICE',
    field: 'price',
    nearest: '0.999',
  },
  {
    when: 'the leverage is above the cap',
    terms: { leverage: 21 },
    code: 'LEVERAGE_CAP',
    field: 'leverage',
    nearest: '20',
  },
  { when: 'the leverage is 0', body: { leverage: 0 }, code: 'LEVERAGE_CAP', field: 'leverage', nearest: '1' },
  {
    when: 'the leverage is a fraction',
    body: { leverage: 1.5 },
    code: 'LEVERAGE_CAP',
    field: 'leverage',
    nearest: '1',
  },
  { when: 'the salt is 2^53', body: { salt: String(2n ** 53n) }, code: 'SALT_RANGE', field: 'salt' },
  {
    when: 'the expiration is in milliseconds',
    body: { expiration_seconds: 1_800_000_000_000 },
    code: 'EXPIRATION_RANGE',
    field: 'expiration_seconds',
  },
  {
    when: 'the expiration has passed',
    terms: { expiration: 1_500_000_000 },
    code: 'ORDER_EXPIRED',
    field: 'expiration_seconds',
  },
]

describe('rejected placements', () => {
  let exchange: ExchangeFixture
  let alice: User

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice', '1000')
  })
  after(() => exchange.stop())

  const refuse = (refusal: Refusal): Promise<Answer> => expectRefusal(exchange, alice, refusal)

  describe('an order that is invalid by itself', () => {
    for (const refusal of FORM)
      it(`when ${refusal.when}, it is rejected with ${refusal.code}`, () => refuse(refusal).then(() => {}))
  })

  describe('an order that market or account do not allow', () => {
    const restore: (() => Promise<unknown>)[] = []
    afterEach(async () => {
      for (const undo of restore.splice(0)) await undo()
    })

    it('when a buy is above the band, it is rejected with the nearest valid price; when it is below, it is accepted', async () => {
      await refuse({
        when: '',
        terms: { price: '105.1' },
        code: 'PRICE_BAND',
        field: 'price',
        nearest: '105',
      })
      await refuse({
        when: '',
        terms: { price: '94.9', side: 'SHORT' },
        code: 'PRICE_BAND',
        field: 'price',
        nearest: '95',
      })
      const passive = await exchange.place(alice, { price: '50', quantity: '0.01' })
      expect(passive.status).to.equal(200)
    })

    it('when the balance does not cover an order, it is rejected with the quantity that it covers', async () => {
      const { body } = await refuse({
        when: '',
        terms: { quantity: '20' },
        code: 'INSUFFICIENT_MARGIN',
        field: 'quantity',
      })
      const largest = await exchange.place(alice, { quantity: body.details.nearest_valid })
      expect(largest.status, JSON.stringify(largest.body)).to.equal(200)
      await exchange.cancel(alice, largest.body.order.order_hash)
    })

    it('when a reduce-only order has no position, it is rejected', () =>
      refuse({
        when: '',
        terms: { reduceOnly: true },
        code: 'REDUCE_ONLY_NO_POSITION',
        field: 'reduce_only',
      }).then(() => {}))

    it('when the position is below its margin requirement, an opening order is rejected', async () => {
      const bob = await createUser(exchange.db, 'bob')
      const matched = {
        matched_entry_notional: e18('120'),
        matched_folded_margin: e18('21'),
        matched_leverage: 20,
      }
      await withMirror(exchange.db)
        .insertInto('positions')
        .values({ user_id: bob.userId, market_id: 1, matched_size: 1000, ...matched })
        .execute()
      const { status, body } = await exchange.place(bob, { quantity: '0.1' })
      expect([status, body.details.code]).to.deep.equal([400, 'MARGIN_REQUIREMENT'])
    })

    it('when the position would exceed the maximum size, the order is rejected', async () => {
      const carol = await createUser(exchange.db, 'carol', '4000000000')
      const matched = { matched_folded_margin: e18('2400000000'), matched_leverage: 1 }
      await withMirror(exchange.db)
        .insertInto('positions')
        .values({ user_id: carol.userId, market_id: 1, matched_size: 2 ** 34, ...matched })
        .execute()
      const { status, body } = await exchange.place(carol, { quantity: '1' })
      expect([status, body.details.code], JSON.stringify(body)).to.deep.equal([400, 'POSITION_LIMIT'])
    })

    it('when an account has 500 open orders in a market, one more is rejected there and accepted in another market', async () => {
      const dave = await createUser(exchange.db, 'dave')
      const bodies = Array.from({ length: 500 }, () => signedBody(dave, { quantity: '0.01' }).body)
      const placed = []
      // Few at a time, so that none waits for its command's whole time.
      for (let at = 0; at < bodies.length; at += 50)
        placed.push(
          ...(await Promise.all(
            bodies.slice(at, at + 50).map((body) => exchange.send(dave, 'POST', '/v0/orders', body)),
          )),
        )
      expect(placed.filter(({ status }) => status === 200)).to.have.length(500)
      const one = await exchange.place(dave, { quantity: '0.01' })
      expect([one.status, one.body.details.code]).to.deep.equal([400, 'OPEN_ORDER_LIMIT'])
      expect((await exchange.place(dave, { market: future, price: '50', quantity: '0.1' })).status).to.equal(
        200,
      )
      await exchange.cancel(dave, placed[7]?.body.order.order_hash)
      expect((await exchange.place(dave, { quantity: '0.01' })).status).to.equal(200)
    })

    const setMode = async (mode: MarketMode): Promise<void> => {
      await exchange.db.updateTable('markets').set({ mode }).where('market_id', '=', 1).execute()
    }
    for (const mode of ['cancel_only', 'halted'] as const) {
      it(`when a market is ${mode}, orders are rejected and cancels accepted`, async () => {
        const { body } = await exchange.place(alice, { quantity: '0.01' })
        restore.push(() => setMode('open'))
        await setMode(mode)
        const { headers } = await refuse({ when: '', status: 503, code: 'MARKET_NOT_OPEN' })
        expect(Number(headers['retry-after'])).to.be.greaterThan(0)
        expect((await exchange.cancel(alice, body.order.order_hash)).body.cancelled).to.equal(true)
      })
    }

    it('when a market has ended, orders are rejected', async () => {
      restore.push(() => setMode('open'))
      await setMode('settled')
      await refuse({ when: '', code: 'MARKET_ENDED' })
    })

    it('when the oracle price is stale or missing, orders are rejected', async () => {
      restore.push(() => setOracle(exchange.db, perpetual, '100'))
      await setOracle(exchange.db, perpetual, '100', Date.now() - 3_600_000)
      const { body } = await refuse({ when: '', status: 503, code: 'ORACLE_STALE' })
      expect(body.details.retryable).to.equal(true)
      await exchange.db.deleteFrom('oracle_reports').where('market_id', '=', 1).execute()
      await refuse({ when: '', status: 503, code: 'ORACLE_STALE' })
    })

    it('when the chain has not been read recently, orders are rejected', async () => {
      const see = (completed_at: number) =>
        exchange.db.updateTable('chain_progress').set({ completed_at }).execute()
      restore.push(() => see(Date.now()))
      await see(Date.now() - 3_600_000)
      await refuse({ when: '', status: 503, code: 'CHAIN_UNSEEN' })
    })
  })
})

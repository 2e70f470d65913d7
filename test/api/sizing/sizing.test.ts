import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { binary, e18, future, perpetual } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import {
  type Answer,
  createUser,
  type ExchangeFixture,
  setOracle,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { append } from '../support/trade-rows.ts'

const MIDDLE = new Map<MarketSpec, number>([
  [perpetual, 1000],
  [future, 100],
  [binary, 500],
])

/** The decimal text of a number of ticks or steps. */
const times = (unit: bigint, count: number): string => {
  const wei = (unit * BigInt(count)).toString().padStart(19, '0')
  return `${wei.slice(0, -18)}.${wei.slice(-18)}`
}

describe('sizing', () => {
  let exchange: ExchangeFixture
  let alice: User
  let maker: User

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice', '10000')
    maker = await createUser(exchange.db, 'maker', '1000000')
    for (const [price, side] of [
      ['100.5', 'SHORT'],
      ['101', 'SHORT'],
      ['99.5', 'LONG'],
    ] as const)
      await exchange.place(maker, { side, price, quantity: '10' })
    await append(exchange, {
      ...{ kind: 'prices_updated', oracle_price: e18('100').toString(), oracle_at: 1_000 },
      ...{ mark_price: e18('100').toString(), at: 1_000 },
    })
    await exchange.project()
  })
  after(() => exchange.stop())

  const estimate = (user: User, body: object): Promise<Answer> =>
    exchange.send(user, 'POST', '/v0/orders/estimate', body)
  const quantity = (user: User, body: object): Promise<Answer> =>
    exchange.send(user, 'POST', '/v0/orders/calculate-quantity', body)

  describe('POST /v0/orders/estimate', () => {
    const market = { market_id: 1, side: 'LONG', order_type: 'MARKET', leverage: 10 }

    it('when the size is a notional, it returns the quantity at the price at which the book would clear', async () => {
      const { status, body } = await estimate(alice, { ...market, sizing_intent: 'notional', size: 500 })
      expect(status, JSON.stringify(body)).to.equal(200)
      expect(body).to.deep.include({ sizing_intent: 'notional', size: 500, leverage: 10, reduce_only: false })
      expect(body).to.include({ available: 10_000, max_leverage: 20 })
      expect(body.price_band).to.include({ lowest: 95, highest: 105, oracle_price: 100 })
      expect(body.estimate).to.include({
        ...{
          quantity: 4.975,
          quantity_e18_raw: e18('4.975').toString(),
          price: 100.5,
          price_source: 'batch',
        },
        ...{ fillable_quantity: 4.975, accepted: true, refusal: null, realized_pnl: 0 },
      })
      expect(body.estimate.notional).to.be.at.most(500)
      expect(body.estimate.reservation).to.include({ opening_quantity: 4.975, reserved_price: 105 })
      expect(body.estimate.fee).to.be.closeTo(4.975 * 100.5 * 0.0005, 1e-12)
      const { position } = body.estimate
      expect(position).to.include({ size: 4.975, entry_price: 100.5, leverage: 10 })
      expect(position.effective_leverage).to.be.greaterThan(10)
      // (100.5 - 10.05) / (1 - 0.0275)
      expect(position.liquidation_price).to.be.closeTo(93.0077, 0.0001)
    })

    it('when the size is units, a share of the available margin, or max, it returns the quantity; 100 % is the maximum', async () => {
      const of = async (sizing_intent: string, size?: number | string) =>
        (await estimate(alice, { ...market, sizing_intent, ...(size !== undefined && { size }) })).body
          .estimate
      expect((await of('units', '1.2345')).quantity).to.equal(1.234)
      const max = await of('max')
      expect((await of('available_margin', 100)).quantity_e18_raw).to.equal(max.quantity_e18_raw)
      const half = await of('available_margin', 50)
      expect(half.quantity).to.be.closeTo(max.quantity / 2, 0.001)
      expect(half.reservation.reserved_margin).to.be.at.most(5_000)
      expect(max.reservation.reserved_margin).to.be.within(9_989, 10_000)
    })

    it('when the size is 0, it returns only the maximum, at every leverage, with its binding rule', async () => {
      const { body } = await estimate(alice, { ...market, sizing_intent: 'units', size: 0 })
      expect(body.estimate).to.equal(null)
      expect(body.maximum.binding).to.include({
        code: 'INSUFFICIENT_MARGIN',
        field: 'quantity',
        received: '10000',
      })
      expect(body.maximum.binding.message).to.be.a('string')
      const leverages = body.by_leverage.map(({ leverage }: { leverage: number }) => leverage)
      expect(leverages).to.deep.equal([1, 2, 3, 5, 10, 20])
      const at = (leverage: number) =>
        body.by_leverage.find((row: { leverage: number }) => row.leverage === leverage).quantity
      expect(at(10)).to.equal(body.maximum.quantity)
      expect(at(1)).to.be.lessThan(at(2))
    })

    it('when a placement would be rejected, it returns the error and the reservation', async () => {
      const { body } = await estimate(alice, { ...market, leverage: 1, sizing_intent: 'units', size: 200 })
      expect(body.estimate).to.include({ accepted: false, quantity: 200 })
      expect(body.estimate.refusal).to.include({ code: 'INSUFFICIENT_MARGIN', field: 'quantity' })
      expect(Number(body.estimate.refusal.nearest_valid)).to.equal(body.maximum.quantity)
      expect(body.estimate.reservation.reserved_margin).to.be.greaterThan(10_000)
      expect(body.estimate.position.size).to.equal(200)
    })

    it('when the size exceeds the largest order, it returns the error and estimates the largest order', async () => {
      const { body } = await estimate(alice, { ...market, sizing_intent: 'units', size: 1e9 })
      expect(body.estimate).to.include({ quantity: 10_000, accepted: false })
      expect(body.estimate.refusal).to.include({ code: 'MAX_ORDER_SIZE', nearest_valid: '10000' })
    })

    it('when the order is a limit or conditional order, it is priced at its limit, its match or its trigger', async () => {
      const of = async (terms: object) =>
        (await estimate(alice, { ...market, sizing_intent: 'units', size: 1, ...terms })).body.estimate
      const resting = await of({ order_type: 'LIMIT', price: 99 })
      expect(resting).to.include({ price: 99, price_source: 'limit', fillable_quantity: 0, fee: 0 })
      const taking = await of({ order_type: 'LIMIT', price: 102 })
      expect(taking).to.include({ price: 100.5, price_source: 'batch', fillable_quantity: 1 })
      const stop = await of({ order_type: 'STOP_MARKET', trigger_price: 104 })
      expect(stop).to.include({ price: 104, price_source: 'trigger', fillable_quantity: 0, accepted: true })
      const notional = await of({ order_type: 'LIMIT', price: 99, sizing_intent: 'notional', size: 990 })
      expect(notional.quantity).to.equal(10)
    })

    it('when the account has orders in the book, they do not count as counterpart', async () => {
      const { body } = await estimate(maker, { ...market, sizing_intent: 'units', size: 1 })
      expect(body.estimate).to.include({ fillable_quantity: 0, price_source: 'oracle', price: 100 })
    })

    for (const [what, changes, code, field, status] of [
      ['no intent', { sizing_intent: undefined }, 'MISSING_FIELD', 'sizing_intent', 400],
      ['an unknown intent', { sizing_intent: 'everything' }, 'INVALID_FIELD', 'sizing_intent', 400],
      ['more than all', { sizing_intent: 'available_margin', size: 101 }, 'INVALID_FIELD', 'size', 400],
      ['a size with max', { sizing_intent: 'max', size: 1 }, 'INVALID_FIELD', 'size', 400],
      ['a negative size', { size: -1 }, 'INVALID_FIELD', 'size', 400],
      ['too many decimals', { size: '0.0000000000000000001' }, 'INVALID_FIELD', 'size', 400],
      ['a limit order without a price', { order_type: 'LIMIT', size: 0 }, 'PRICE_REQUIRED', 'price', 400],
      ['a price off the grid', { order_type: 'LIMIT', price: 99.05 }, 'TICK_SIZE', 'price', 400],
      ['a stop without a trigger', { order_type: 'STOP_MARKET' }, 'TRIGGER_REQUIRED', 'trigger_price', 400],
      ['too much leverage', { leverage: 21 }, 'LEVERAGE_CAP', 'leverage', 400],
      ['a market that is not there', { market_id: 9 }, 'MARKET_NOT_FOUND', 'market_id', 404],
      ['an unknown field', { usd_amount: 1 }, 'UNKNOWN_FIELD', 'usd_amount', 400],
    ] as const) {
      it(`when the request has ${what}, it answers ${code}`, async () => {
        const body = { ...market, sizing_intent: 'units', size: 1, ...changes }
        const answer = await estimate(alice, body)
        expect(answer.status, JSON.stringify(answer.body)).to.equal(status)
        expect(answer.body.details).to.include({ code, field })
      })
    }

    it('when a field is invalid, the error names the field of the request', async () => {
      const refusal = async (terms: object) => (await estimate(alice, { ...market, ...terms })).body.details
      expect(await refusal({ sizing_intent: 'available_margin', size: 100.5 })).to.include({
        ...{ expected: 'a percentage from 0 to 100', received: '100.5', nearest_valid: '100' },
      })
      expect(await refusal({ sizing_intent: 'max', size: '2.5' })).to.include({
        ...{ received: '2.5', nearest_valid: '0' },
      })
    })

    it('when the size is less than one step, the error names the minimum quantity', async () => {
      const { body } = await estimate(alice, { ...market, sizing_intent: 'units', size: 0.0001 })
      expect(body.estimate.refusal).to.include({ code: 'MIN_ORDER_SIZE', nearest_valid: '0.01' })
    })

    it('when the credential is missing, it answers 401', async () => {
      expect((await exchange.send(null, 'POST', '/v0/orders/estimate', {})).status).to.equal(401)
      expect((await exchange.send(null, 'POST', '/v0/orders/calculate-quantity', {})).status).to.equal(401)
    })

    it('when estimates are requested, nothing is placed', async () => {
      const before = await exchange.state()
      await estimate(alice, { ...market, sizing_intent: 'max' })
      expect(await exchange.state()).to.deep.equal(before)
    })
  })

  describe('the maximum, over HTTP', () => {
    /** Stores a position as the keeper does. */
    const hold = async (user: User, spec: MarketSpec, size: number): Promise<void> => {
      const middle = MIDDLE.get(spec) as number
      const notional = (BigInt(Math.abs(size)) * BigInt(middle) * spec.tick * spec.step) / e18('1')
      const own =
        spec.kind === 'binary_future' && size < 0 ? BigInt(Math.abs(size)) * spec.step - notional : notional
      const mined = { size, entry_notional: notional, folded_margin: own, leverage: 1 }
      const matched = {
        ...{ matched_size: size, matched_entry_notional: notional },
        ...{ matched_folded_margin: own, matched_leverage: 1 },
      }
      await withMirror(exchange.db)
        .insertInto('positions')
        .values({ user_id: user.userId, market_id: spec.marketId, ...mined, ...matched })
        .execute()
    }
    let users = 0

    for (const spec of MIDDLE.keys()) {
      for (const size of [0, 700, -700]) {
        const held = size === 0 ? 'nothing' : size > 0 ? 'a long' : 'a short'
        it(`when the maximum in ${spec.symbol} with ${held} is placed, it is accepted, and one step more is rejected`, async () => {
          const middle = MIDDLE.get(spec) as number
          await setOracle(exchange.db, spec, times(spec.tick, middle))
          const user = await createUser(exchange.db, `sizer-${++users}`, '900')
          if (size !== 0) await hold(user, spec, size)
          const resting = {
            market: spec,
            price: times(spec.tick, middle - 3),
            quantity: times(spec.step, 40),
          }
          expect((await exchange.place(user, resting)).status).to.equal(200)
          for (const side of ['LONG', 'SHORT'] as const) {
            for (const leverage of [1, 5]) {
              for (const terms of [
                { type: 'LIMIT', price: times(spec.tick, middle + (side === 'LONG' ? -1 : 1)) },
                { type: 'MARKET' },
              ]) {
                await expectMaximum(user, spec, { side, leverage, ...terms })
              }
            }
          }
        })
      }
    }

    async function expectMaximum(
      user: User,
      spec: MarketSpec,
      terms: { side: 'LONG' | 'SHORT'; leverage: number; type: string; price?: string },
    ): Promise<void> {
      const input = `${spec.symbol} ${JSON.stringify(terms)}`
      const { body } = await estimate(user, {
        ...{ market_id: spec.marketId, side: terms.side, order_type: terms.type, leverage: terms.leverage },
        ...{ sizing_intent: 'max', ...(terms.price !== undefined && { price: terms.price }) },
      })
      const most = Number(BigInt(body.maximum.quantity_e18_raw) / spec.step)
      expect(most, `${input} ${JSON.stringify(body)}`).to.be.greaterThan(0)
      const place = (count: number) =>
        exchange.place(user, { market: spec, ...terms, quantity: times(spec.step, count) })
      const { body: refused } = await place(most + 1)
      expect(refused.details?.code, `${input}: one step more`).to.equal(body.maximum.binding.code)
      const { status, body: placed } = await place(most)
      expect(status, `${input}: ${JSON.stringify(placed)}`).to.equal(200)
      expect(placed.order.reserved_margin_e18_raw).to.equal(body.maximum.reserved_margin_e18_raw)
      await exchange.cancel(user, placed.order.order_hash)
    }

    it('when an order only reduces, the maximum is the position, and reduce_percentage is a share of it', async () => {
      const user = await createUser(exchange.db, 'reducer', '1')
      await hold(user, perpetual, 2_000)
      const of = async (size: number) =>
        (
          await estimate(user, {
            ...{
              market_id: 1,
              side: 'SHORT',
              order_type: 'MARKET',
              sizing_intent: 'reduce_percentage',
              size,
            },
          })
        ).body
      const quarter = await of(25)
      expect(quarter).to.include({ reduce_only: true })
      expect(quarter.maximum).to.include({ quantity: 2, reserved_margin: 0 })
      expect(quarter.maximum.binding.code).to.equal('POSITION_SIZE')
      expect(quarter.estimate).to.include({ quantity: 0.5, accepted: true, price: 99.5 })
      expect(quarter.estimate.realized_pnl).to.equal(-0.25)
      expect((await of(100)).estimate.position).to.include({
        size: 0,
        liquidation_price: null,
        entry_price: null,
      })
      expect((await of(0.0001)).estimate).to.include({ quantity: 0, accepted: false })
      const none = await estimate(alice, {
        ...{
          market_id: 1,
          side: 'SHORT',
          order_type: 'MARKET',
          sizing_intent: 'reduce_percentage',
          size: 50,
        },
      })
      expect(none.body.estimate.refusal.code).to.equal('REDUCE_ONLY_NO_POSITION')
    })
  })

  describe('POST /v0/orders/calculate-quantity', () => {
    it('when a budget is given, it returns the quantity at the estimated clearing price', async () => {
      const { status, body } = await quantity(alice, { market_id: 1, side: 'LONG', usd_amount: '1507.5' })
      expect(status, JSON.stringify(body)).to.equal(200)
      // 15 units reach the second level.
      expect(body).to.include({ order_type: 'MARKET', price_source: 'batch', estimated_clearing_price: 101 })
      expect(body.quantity).to.be.closeTo(1_507.5 / 101, 0.001)
      expect(body.notional).to.be.at.most(1_507.5)
      expect(body.fillable_quantity).to.equal(body.quantity)
      const limit = await quantity(alice, { market_id: 1, side: 'LONG', usd_amount: 990, price: 99 })
      expect(limit.body).to.include({ order_type: 'LIMIT', quantity: 10, estimated_clearing_price: 99 })
    })

    it('when the account cannot pay, it returns the quantity all the same', async () => {
      const poor = await createUser(exchange.db, 'poor', '0')
      const { body } = await quantity(poor, { market_id: 1, side: 'LONG', usd_amount: 5_000 })
      expect(body.quantity).to.be.greaterThan(49)
    })

    for (const [what, body, code, field] of [
      ['a budget for nothing', { usd_amount: 0.01 }, 'MIN_ORDER_SIZE', 'usd_amount'],
      ['a budget below the smallest order', { usd_amount: 0.5 }, 'MIN_ORDER_SIZE', 'usd_amount'],
      ['no budget', {}, 'MISSING_FIELD', 'usd_amount'],
      ['a budget beyond the largest order', { usd_amount: 1e300 }, 'MAX_ORDER_SIZE', 'usd_amount'],
      ['a limit beyond the band', { usd_amount: 100, price: 110 }, 'PRICE_BAND', 'price'],
      ['a conditional type', { usd_amount: 100, order_type: 'STOP_MARKET' }, 'INVALID_FIELD', 'order_type'],
    ] as const) {
      it(`when the request has ${what}, it answers ${code}`, async () => {
        const answer = await quantity(alice, { market_id: 1, side: 'LONG', ...body })
        expect(answer.status, JSON.stringify(answer.body)).to.equal(400)
        expect(answer.body.details).to.include({ code, field })
      })
    }
  })

  describe('without a fresh oracle price or chain', () => {
    it('when oracle price or chain are stale, it returns the error of a placement', async () => {
      await setOracle(exchange.db, future, '50', Date.now() - 3_600_000)
      const body = { market_id: 2, side: 'LONG', order_type: 'MARKET', sizing_intent: 'max' }
      const { status, body: answer, headers } = await estimate(alice, body)
      expect([status, answer.details.code]).to.deep.equal([503, 'ORACLE_STALE'])
      expect(headers['retry-after']).to.match(/^\d/)
    })

    it('when the market accepts no orders, the maximum is 0 with that reason', async () => {
      await exchange.db
        .updateTable('markets')
        .set({ mode: 'cancel_only' })
        .where('market_id', '=', 3)
        .execute()
      const body = { market_id: 3, side: 'LONG', order_type: 'MARKET', sizing_intent: 'max' }
      const { body: answer } = await estimate(alice, body)
      expect(answer.maximum.quantity).to.equal(0)
      expect(answer.maximum.binding.code).to.equal('MARKET_NOT_OPEN')
      expect(answer.estimate.accepted).to.equal(false)
    })
  })
})

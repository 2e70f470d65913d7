import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { future, perpetual } from '../../support/markets.ts'
import {
  type Answer,
  codeOf,
  createUser,
  type ExchangeFixture,
  type OrderTerms,
  setOracle,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { runAuction } from '../support/keeper-turns.ts'
import { newRequestId } from '../support/place-batch.ts'

let users = 0

describe('time_in_force and post_only', () => {
  let exchange: ExchangeFixture
  let alice: User
  let bob: User

  before(async () => {
    exchange = await startExchange()
  })
  after(() => exchange.stop())
  beforeEach(async () => {
    alice = await createUser(exchange.db, `alice ${users++}`)
    bob = await createUser(exchange.db, `bob ${users++}`)
  })

  const flagged = (user: User, terms: OrderTerms, flags: object) => ({
    ...signedBody(user, terms).body,
    ...flags,
  })
  const place = (user: User, terms: OrderTerms, flags: object = {}): Promise<Answer> =>
    exchange.send(user, 'POST', '/v0/orders', flagged(user, terms, flags))
  /** With a fresh oracle price, however long the test has run. */
  const auction = async (market = perpetual, price = '100'): Promise<number | null> => {
    await setOracle(exchange.db, market, price)
    return runAuction(exchange, market)
  }
  const read = async (user: User, id: string) => {
    await exchange.project()
    return (await exchange.get(user, `/v0/orders/${id}`)).body
  }
  const cancelAll = (user: User) => exchange.send(user, 'POST', '/v0/orders/cancel/all', {})
  const POST_ONLY = { post_only: true }
  const IOC = { time_in_force: 'ioc' }

  it('when an order has flags, its answer and its reads show them; the defaults are gtc and false', async () => {
    for (const [flags, shown] of [
      [{}, { time_in_force: 'gtc', post_only: false }],
      [
        { time_in_force: 'gtc', post_only: false },
        { time_in_force: 'gtc', post_only: false },
      ],
      [POST_ONLY, { time_in_force: 'gtc', post_only: true }],
      [IOC, { time_in_force: 'ioc', post_only: false }],
    ]) {
      const { status, body } = await place(alice, {}, flags)
      expect(status, JSON.stringify(body)).to.equal(200)
      expect(body.order).to.deep.include({ ...shown, replaces: null, signed_quantity: 1 })
      expect(await read(alice, body.order.order_id)).to.deep.include(shown)
    }
    await cancelAll(alice)
  })

  it('when a post-only order crosses an earlier limit order, placement, dry run and batch reject it with the nearest price', async () => {
    const { body: ask } = await place(bob, { side: 'SHORT', price: '101' })
    const crossing = flagged(alice, { price: '101' }, POST_ONLY)
    const before = await exchange.state()
    const batch = { client_request_id: newRequestId(), mode: 'best_effort', orders: [crossing] }
    const refusals = [
      (await exchange.send(alice, 'POST', '/v0/orders', crossing)).body,
      (await exchange.send(alice, 'POST', '/v0/orders/validate', crossing)).body,
      (await exchange.send(alice, 'POST', '/v0/orders/place/batch', batch)).body.results[0].error,
    ]
    for (const { details } of refusals)
      expect(details).to.include({
        code: 'WOULD_TAKE',
        field: 'price',
        expected: 'below the lowest sell, 101',
        received: '101',
        nearest_valid: '100.9',
      })
    expect(((await exchange.state()) as { orders: unknown }).orders).to.deep.equal(
      (before as { orders: unknown }).orders,
    )
    expect((await place(alice, { price: '100.9' }, POST_ONLY)).status).to.equal(200)
    expect((await place(alice, { price: '101' })).status).to.equal(200)
    const sell = await place(bob, { side: 'SHORT', price: '101' }, POST_ONLY)
    expect(sell.body.details).to.include({ code: 'WOULD_TAKE', nearest_valid: '101.1' })
    expect(ask.order.status).to.equal('OPEN')
    await Promise.all([cancelAll(alice), cancelAll(bob)])
  })

  it('when a post-only order crosses an order of its own account, it is rejected too', async () => {
    await place(alice, { side: 'SHORT', price: '102' })
    expect(codeOf(await place(alice, { price: '102.5' }, POST_ONLY))).to.deep.equal([400, 'WOULD_TAKE'])
    await cancelAll(alice)
  })

  it('when all steps of an earlier order are settling, a post-only order that crosses it is still rejected', async () => {
    const { body: ask } = await place(bob, { side: 'SHORT', price: '99' })
    await place(alice, { price: '99' })
    expect(await auction()).to.not.equal(null)
    expect(await read(bob, ask.order.order_id)).to.include({ settling_quantity: 1, remaining_quantity: 0 })
    expect(codeOf(await place(alice, { price: '99' }, POST_ONLY))).to.deep.equal([400, 'WOULD_TAKE'])
    expect((await place(alice, { price: '98.9' }, POST_ONLY)).status).to.equal(200)
    await cancelAll(alice)
  })

  it('when a flag is not possible for the order, the answer names the field and what would be valid', async () => {
    const market = { type: 'MARKET', price: '0' }
    const stop = { type: 'STOP_LIMIT', trigger: '105', price: '106' }
    for (const [terms, flags, code, field] of [
      [market, POST_ONLY, 'POST_ONLY_NOT_ALLOWED', 'post_only'],
      [stop, POST_ONLY, 'POST_ONLY_NOT_ALLOWED', 'post_only'],
      [market, IOC, 'TIME_IN_FORCE_NOT_ALLOWED', 'time_in_force'],
      [stop, IOC, 'TIME_IN_FORCE_NOT_ALLOWED', 'time_in_force'],
      [{}, { ...IOC, ...POST_ONLY }, 'POST_ONLY_IOC', 'post_only'],
      [{}, { time_in_force: 'fok' }, 'FOK_NOT_SUPPORTED', 'time_in_force'],
      [{}, { time_in_force: 'GTC' }, 'INVALID_FIELD', 'time_in_force'],
      [{}, { post_only: 'yes' }, 'INVALID_FIELD', 'post_only'],
    ] as const) {
      const { status, body } = await place(alice, terms, flags)
      expect([status, body.details.code, body.details.field], code).to.deep.equal([400, code, field])
      expect(body.details).to.include.keys('expected', 'received')
    }
  })

  it('when a signed order is repeated with other flags, it is 409 and the order stays as it was', async () => {
    const { body } = signedBody(alice, { price: '97' })
    const first = await exchange.send(alice, 'POST', '/v0/orders', { ...body, ...POST_ONLY })
    const other = await exchange.send(alice, 'POST', '/v0/orders', body)
    expect(codeOf(other)).to.deep.equal([409, 'ORDER_FLAGS_DIFFER'])
    expect(other.body.details).to.deep.include({
      field: 'post_only',
      expected: { time_in_force: 'gtc', post_only: true, bracket_id: null, builder: null },
      received: { time_in_force: 'gtc', post_only: false, bracket_id: null, builder: null },
      order_id: first.body.order.order_id,
    })
    const same = await exchange.send(alice, 'POST', '/v0/orders', { ...body, ...POST_ONLY })
    expect(same.body.is_duplicate).to.equal(true)
    await cancelAll(alice)
  })

  it('when an ioc order fills in part, its remainder ends with that auction and releases its reservation', async () => {
    await place(bob, { side: 'SHORT', price: '100', quantity: '0.4' })
    const { body } = await place(alice, { price: '100', quantity: '1' }, IOC)
    expect(await auction()).to.not.equal(null)
    const settling = await read(alice, body.order.order_id)
    expect(settling).to.include({ status: 'OPEN', settling_quantity: 0.4, reserved_margin: 40.02 })
    const row = await exchange.db
      .selectFrom('orders')
      .selectAll()
      .where('order_id', '=', body.order.order_id)
      .executeTakeFirstOrThrow()
    expect(row).to.include({ closing_reason: 'IOC_REMAINDER', openable: 0, reserved: 0n })
    expect(row.partial_slot).to.not.equal(null)
  })

  it('when an auction matches nothing, an ioc order ends CANCELLED with IOC_REMAINDER', async () => {
    const { body } = await place(alice, { market: future, price: '48' }, IOC)
    expect(await auction(future, '50')).to.equal(null)
    expect(await read(alice, body.order.order_id)).to.include({
      status: 'CANCELLED',
      status_reason: 'IOC_REMAINDER',
      reserved_margin: 0,
    })
  })

  it('when an estimate has flags, it checks whether they fit the type', async () => {
    const estimate = (body: object) => exchange.send(alice, 'POST', '/v0/orders/estimate', body)
    const order = { market_id: 1, side: 'LONG', order_type: 'LIMIT', price: '100', sizing_intent: 'max' }
    expect((await estimate({ ...order, ...POST_ONLY })).status).to.equal(200)
    expect((await estimate({ ...order, ...IOC })).status).to.equal(200)
    expect(codeOf(await estimate({ ...order, ...IOC, ...POST_ONLY }))).to.deep.equal([400, 'POST_ONLY_IOC'])
  })
})

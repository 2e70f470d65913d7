import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, beforeEach, describe, it } from 'mocha'
import { future, perpetual } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import { expectConsistentAccounting } from '../support/accounting.ts'
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

describe('POST /v0/orders/replace', () => {
  let exchange: ExchangeFixture
  let alice: User
  let bob: User

  before(async () => {
    exchange = await startExchange()
  })
  after(async () => {
    await expectConsistentAccounting(exchange.db)
    await exchange.stop()
  })
  beforeEach(async () => {
    alice = await createUser(exchange.db, `alice ${users++}`)
    bob = await createUser(exchange.db, `bob ${users++}`)
  })

  const place = async (user: User, terms: OrderTerms = {}, more: object = {}) => {
    const { status, body } = await exchange.send(user, 'POST', '/v0/orders', {
      ...signedBody(user, terms).body,
      ...more,
    })
    expect(status, JSON.stringify(body)).to.equal(200)
    return body.order
  }
  const send = (user: User, body: unknown): Promise<Answer> =>
    exchange.send(user, 'POST', '/v0/orders/replace', body)
  const byHash = (hash: string, order: object, more: object = {}) => ({
    cancel: { order_hash: hash },
    order,
    ...more,
  })
  /** With a fresh oracle price, however long the test has run. */
  const auction = async (): Promise<number | null> => {
    await setOracle(exchange.db, perpetual, '100')
    return runAuction(exchange)
  }
  const read = async (user: User, id: string) => {
    await exchange.project()
    return (await exchange.get(user, `/v0/orders/${id}`)).body
  }
  const reservedOf = async ({ userId }: User): Promise<bigint> =>
    (
      await withMirror(exchange.db)
        .selectFrom('accounts')
        .select('reserved')
        .where('user_id', '=', userId)
        .executeTakeFirstOrThrow()
    ).reserved
  const live = async ({ userId }: User): Promise<string[]> =>
    (
      await exchange.db
        .selectFrom('orders')
        .select('order_id')
        .where('user_id', '=', userId)
        .where('ended_at', 'is', null)
        .execute()
    ).map(({ order_id }) => order_id)

  it('when an order is replaced, the old one ends REPLACED, the new one has a new place, and the reservation moves', async () => {
    const old = await place(alice, { price: '100' })
    const { status, body } = await send(
      alice,
      byHash(old.order_hash, signedBody(alice, { price: '99' }).body),
    )
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(body.is_duplicate).to.equal(false)
    expect(body.order).to.include({
      status: 'OPEN',
      price: 99,
      replaces: old.order_id,
      signed_quantity: 1,
      quantity: 1,
    })
    expect(body.replaced).to.include({
      order_id: old.order_id,
      status: 'CANCELLED',
      status_reason: 'REPLACED',
      reserved_margin: 0,
    })
    expect(String(await reservedOf(alice))).to.equal(body.order.reserved_margin_e18_raw)
    expect(body.balance.reserved_e18_raw).to.equal(body.order.reserved_margin_e18_raw)
    expect(await live(alice)).to.deep.equal([body.order.order_id])
    expect(await read(alice, old.order_id)).to.deep.equal({ ...body.replaced })
    expect(await read(alice, body.order.order_id)).to.include({ replaces: old.order_id })
    const events = (await exchange.get(alice, `/v0/orders/${old.order_id}/events`)).body.events
    expect(events.map(({ kind }: { kind: string }) => kind)).to.include('CANCELLED')
  })

  it('when the whole balance is reserved, the old reservation pays for the new order', async () => {
    const poor = await createUser(exchange.db, `poor ${users++}`, '101')
    const old = await place(poor, { price: '100' })
    expect((await exchange.place(poor, { price: '100' })).status).to.equal(400)
    const answer = await send(poor, byHash(old.order_hash, signedBody(poor, { price: '100.5' }).body))
    expect(answer.status, JSON.stringify(answer.body)).to.equal(200)
    const dear = await send(
      poor,
      byHash(answer.body.order.order_hash, signedBody(poor, { price: '102' }).body),
    )
    expect(codeOf(dear)).to.deep.equal([400, 'INSUFFICIENT_MARGIN'])
    expect(await live(poor)).to.deep.equal([answer.body.order.order_id])
  })

  it('when an order has a label, the new order gets it, and it can be replaced by its label', async () => {
    const old = await place(alice, {}, { client_order_id: 'bid' })
    const first = await send(alice, {
      cancel: { client_order_id: 'bid' },
      order: signedBody(alice, { price: '99' }).body,
    })
    expect(first.body.order, JSON.stringify(first.body)).to.include({
      client_order_id: 'bid',
      replaces: old.order_id,
    })
    const second = await send(alice, {
      cancel: { client_order_id: 'bid' },
      order: { ...signedBody(alice, { price: '98' }).body, client_order_id: 'other' },
    })
    expect(second.body.order).to.include({ client_order_id: 'other', replaces: first.body.order.order_id })
    await exchange.project()
    const shown = await exchange.get(alice, '/v0/orders/by-client-id/other')
    expect(shown.body.order_id).to.equal(second.body.order.order_id)
    expect((await place(alice, {}, { client_order_id: 'bid' })).client_order_id).to.equal('bid')
  })

  it('when a replacement is repeated, by hash or by label, its answer names the same orders and nothing changes', async () => {
    const old = await place(alice, {}, { client_order_id: 'again' })
    const order = signedBody(alice, { price: '99' }).body
    const body = byHash(old.order_hash, order)
    const first = await send(alice, body)
    const state = await exchange.state()
    for (const repeated of [body, { cancel: { client_order_id: 'again' }, order }]) {
      const again = await send(alice, repeated)
      expect(again.status, JSON.stringify(again.body)).to.equal(200)
      expect(again.body).to.deep.include({
        is_duplicate: true,
        order: first.body.order,
        replaced: first.body.replaced,
      })
    }
    expect(await exchange.state()).to.deep.equal(state)
    const other = await place(alice, { price: '97' })
    expect(codeOf(await send(alice, byHash(other.order_hash, order)))).to.deep.equal([
      409,
      'NOT_A_REPLACEMENT',
    ])
    const placed = signedBody(alice, { price: '96' }).body
    await exchange.send(alice, 'POST', '/v0/orders', placed)
    expect(codeOf(await send(alice, byHash(other.order_hash, placed)))).to.deep.equal([
      409,
      'NOT_A_REPLACEMENT',
    ])
    expect(codeOf(await send(alice, byHash(old.order_hash, { ...order, post_only: true })))).to.deep.equal([
      409,
      'ORDER_FLAGS_DIFFER',
    ])
  })

  it('when the new order is rejected for any reason, the old order stays as it was', async () => {
    const old = await place(alice, { price: '100' })
    await place(bob, { side: 'SHORT', price: '103' })
    const state = await exchange.state()
    const good = signedBody(alice, { price: '99' })
    for (const [order, code] of [
      [signedBody(alice, { price: '106' }).body, 'PRICE_BAND'],
      [signedBody(alice, { quantity: '0.001' }).body, 'MIN_ORDER_SIZE'],
      [{ ...signedBody(alice, { price: '103' }).body, post_only: true }, 'WOULD_TAKE'],
      [{ ...good.body, price: '98' }, 'SIGNATURE_MISMATCH'],
      [signedBody(alice, { side: 'SHORT', price: '104' }).body, 'REPLACE_MISMATCH'],
      [signedBody(alice, { market: future, price: '50' }).body, 'REPLACE_MISMATCH'],
      [signedBody(alice, { price: '99', expiration: 1 }).body, 'ORDER_EXPIRED'],
      [{ ...signedBody(alice).body, salt: old.salt }, 'SIGNATURE_MISMATCH'],
      [signedBody(alice, { price: '99', salt: BigInt(old.salt) }).body, 'SALT_USED'],
    ] as const) {
      const { body } = await send(alice, byHash(old.order_hash, order))
      expect(body.details?.code, JSON.stringify(body)).to.equal(code)
      // The salt of an order that exists leaves open whether it was placed.
      if (!('salt' in order) || order.salt !== old.salt) expect(body.details.outcome).to.equal('not_placed')
    }
    expect(await exchange.state()).to.deep.equal(state)
  })

  it('when the replaced order does not exist, is of another account, has ended or is not named, nothing is placed', async () => {
    const ended = await place(alice)
    await exchange.cancel(alice, ended.order_hash, {})
    const theirs = await place(bob)
    const { body: order } = signedBody(alice, { price: '99' })
    const unknown = `0x${'12'.repeat(32)}`
    for (const [cancel, status, code] of [
      [{ order_hash: unknown }, 404, 'ORDER_NOT_FOUND'],
      [{ client_order_id: 'nobody' }, 404, 'ORDER_NOT_FOUND'],
      [{ order_hash: theirs.order_hash }, 403, 'NOT_YOURS'],
      [{ order_hash: ended.order_hash }, 409, 'ORDER_NOT_REPLACEABLE'],
      [{}, 400, 'REPLACE_TARGET_REQUIRED'],
      [{ order_hash: ended.order_hash, client_order_id: 'x' }, 400, 'REPLACE_TARGET_REQUIRED'],
      [{ order_hash: '0x12' }, 400, 'INVALID_FIELD'],
      [{ hash: unknown }, 400, 'UNKNOWN_FIELD'],
    ] as const)
      expect(codeOf(await send(alice, { cancel, order })), JSON.stringify(cancel)).to.deep.equal([
        status,
        code,
      ])
    for (const body of [{ order }, { cancel: { order_hash: unknown } }])
      expect(codeOf(await send(alice, body))).to.deep.equal([400, 'MISSING_FIELD'])
    const odd = { cancel: { order_hash: unknown }, order, if_filled: 'ignore' }
    expect(codeOf(await send(alice, odd))).to.deep.equal([400, 'INVALID_FIELD'])
    expect(await live(alice)).to.deep.equal([])
  })

  it('when a conditional order waits, it is replaced like any other', async () => {
    const old = await place(alice, { type: 'STOP_LIMIT', trigger: '105', price: '106' })
    expect(old.status).to.equal('PENDING_TRIGGER')
    const order = signedBody(alice, { type: 'STOP_LIMIT', trigger: '104', price: '105' }).body
    const { body } = await send(alice, byHash(old.order_hash, order))
    expect(body.order, JSON.stringify(body)).to.include({ status: 'PENDING_TRIGGER', trigger_price: 104 })
    expect(body.replaced).to.include({ status: 'CANCELLED', status_reason: 'REPLACED' })
    const limit = await send(alice, byHash(body.order.order_hash, signedBody(alice, { price: '98' }).body))
    expect(limit.body.order).to.include({ status: 'OPEN' })
  })

  it('when a part is settling, refuse rejects and reduce subtracts it from the signed quantity', async () => {
    const old = await place(alice, { price: '101', quantity: '1' })
    await place(bob, { side: 'SHORT', price: '101', quantity: '0.4' })
    expect(await auction()).to.not.equal(null)
    const order = signedBody(alice, { price: '99', quantity: '1' }).body
    const refused = await send(alice, byHash(old.order_hash, order))
    expect(codeOf(refused)).to.deep.equal([409, 'ORDER_PARTLY_FILLED'])
    expect(refused.body.details).to.include({
      field: 'if_filled',
      nearest_valid: 'reduce',
      filled_quantity: '0.4',
    })
    const small = signedBody(alice, { price: '99', quantity: '0.405' }).body
    const below = await send(alice, byHash(old.order_hash, small, { if_filled: 'reduce' }))
    expect(codeOf(below)).to.deep.equal([400, 'REDUCED_BELOW_MINIMUM'])
    expect(below.body.details).to.include({ field: 'quantity', received: '0.405', nearest_valid: '0.41' })
    const { status, body } = await send(alice, byHash(old.order_hash, order, { if_filled: 'reduce' }))
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(body.order).to.include({ quantity: 0.6, signed_quantity: 1, remaining_quantity: 0.6 })
    expect(body.replaced).to.include({
      status: 'CANCEL_PENDING_FINALIZE',
      status_reason: null,
      settling_quantity: 0.4,
    })
    const gone = await send(alice, byHash(old.order_hash, signedBody(alice, { price: '98' }).body))
    expect(codeOf(gone)).to.deep.equal([409, 'ORDER_NOT_REPLACEABLE'])
    const next = signedBody(alice, { price: '98', quantity: '1' }).body
    const again = await send(alice, byHash(body.order.order_hash, next, { if_filled: 'reduce' }))
    expect(again.body.order).to.include({ quantity: 0.6, signed_quantity: 1 })
  })

  it('when the engine has released ended orders, a replacement finds the ended target, and a repetition its first result', async () => {
    const old = await place(alice)
    const body = byHash(old.order_hash, { ...signedBody(alice, { price: '99' }).body, post_only: true })
    const first = await send(alice, body)
    await exchange.cancel(alice, first.body.order.order_hash, {})
    await exchange.project()
    await exchange.engine.release()
    const ended = await send(alice, byHash(old.order_hash, signedBody(alice, { price: '98' }).body))
    expect(codeOf(ended)).to.deep.equal([409, 'ORDER_NOT_REPLACEABLE'])
    expect(ended.body.details).to.include({ received: 'CANCELLED', order_id: old.order_id })
    const again = await send(alice, body)
    expect(again.status, JSON.stringify(again.body)).to.equal(200)
    expect(again.body.order).to.include({ order_id: first.body.order.order_id, status: 'CANCELLED' })
    expect(again.body).to.deep.include({ is_duplicate: true, replaced: first.body.replaced })
    const otherFlags = byHash(old.order_hash, { ...body.order, post_only: false })
    expect(codeOf(await send(alice, otherFlags))).to.deep.equal([409, 'ORDER_FLAGS_DIFFER'])
    const placed = signedBody(alice, { price: '97' })
    await exchange.send(alice, 'POST', '/v0/orders', placed.body)
    await exchange.cancel(alice, placed.hash, {})
    await exchange.project()
    await exchange.engine.release()
    const mismatch = await send(alice, byHash(old.order_hash, placed.body))
    expect(codeOf(mismatch)).to.deep.equal([409, 'NOT_A_REPLACEMENT'])
    const unknown = await send(alice, byHash(`0x${'34'.repeat(32)}`, signedBody(alice).body))
    expect(codeOf(unknown)).to.deep.equal([404, 'ORDER_NOT_FOUND'])
  })

  describe('in batches', () => {
    const sendBatch = (user: User, orders: unknown, mode = 'best_effort', id = newRequestId()) =>
      exchange.send(user, 'POST', '/v0/orders/replace/batch', { client_request_id: id, mode, orders })

    it('when fifty orders are replaced, each has its new order, and a repetition is the same answer', async () => {
      const olds = []
      for (let at = 0; at < 50; at++) olds.push(await place(alice, { price: '95', quantity: '0.1' }))
      const orders = olds.map(({ order_hash }) =>
        byHash(order_hash, signedBody(alice, { price: '96', quantity: '0.1' }).body),
      )
      const id = newRequestId()
      const { status, body } = await sendBatch(alice, orders, 'atomic', id)
      expect(status, JSON.stringify(body)).to.equal(200)
      expect([body.accepted, body.refused]).to.deep.equal([50, 0])
      for (const [at, { order, replaced }] of body.results.entries()) {
        expect(order).to.include({ price: 96, replaces: olds[at].order_id })
        expect(replaced).to.include({ order_id: olds[at].order_id, status_reason: 'REPLACED' })
      }
      expect(await live(alice)).to.have.length(50)
      const again = await sendBatch(alice, orders, 'atomic', id)
      expect(again.body).to.deep.equal({ ...body, is_duplicate: true })
      const named = await sendBatch(alice, orders)
      for (const one of named.body.results) expect(one).to.include({ is_duplicate: true })
    })

    it('when one item is rejected, an atomic batch changes nothing, and best_effort executes all other items', async () => {
      const [one, two] = [await place(alice), await place(alice)]
      const orders = () => [
        byHash(one.order_hash, signedBody(alice, { price: '99' }).body),
        byHash(two.order_hash, signedBody(alice, { price: '106' }).body),
        { order: {} },
      ]
      const state = await exchange.state()
      const atomic = await sendBatch(alice, orders().slice(0, 2), 'atomic')
      expect(codeOf(atomic)).to.deep.equal([400, 'PRICE_BAND'])
      expect(atomic.body.details).to.include({ index: 1, field: 'orders.1.price' })
      expect(await exchange.state()).to.deep.equal(state)
      const { body } = await sendBatch(alice, orders())
      expect([body.accepted, body.refused]).to.deep.equal([1, 2])
      expect(body.results[1].error.details.code).to.equal('PRICE_BAND')
      expect(body.results[2].error.details.code).to.equal('MISSING_FIELD')
      expect(await live(alice)).to.have.members([two.order_id, body.results[0].order.order_id])
    })

    it('when a batch with a refused item is repeated and its answer cannot be read, the error says that it was executed', async () => {
      const old = await place(alice)
      const orders = [byHash(old.order_hash, signedBody(alice, { price: '99' }).body), { order: {} }]
      const id = newRequestId()
      expect((await sendBatch(alice, orders, 'best_effort', id)).body).to.include({ accepted: 1, refused: 1 })
      await sql`alter table read.orders rename to orders_away`.execute(exchange.db)
      const again = await sendBatch(alice, orders, 'best_effort', id).finally(() =>
        sql`alter table read.orders_away rename to orders`.execute(exchange.db),
      )
      expect([again.status, again.body.details.outcome]).to.deep.equal([500, 'placed'])
    })

    it('when a batch replaces an order and then its replacement, both take effect in turn', async () => {
      const old = await place(alice)
      const first = signedBody(alice, { price: '99' })
      const orders = [
        byHash(old.order_hash, first.body),
        byHash(first.hash, signedBody(alice, { price: '98' }).body),
      ]
      const { body } = await sendBatch(alice, orders, 'atomic')
      expect(
        body.results?.map(({ order }: { order: { price: number } }) => order.price),
        JSON.stringify(body),
      ).to.deep.equal([99, 98])
      expect(await live(alice)).to.deep.equal([body.results[1].order.order_id])
    })
  })
})

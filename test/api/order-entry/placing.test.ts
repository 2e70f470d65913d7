import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { binary, e18, future, perpetual } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import {
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'

describe('POST /v0/orders', () => {
  let exchange: ExchangeFixture
  let alice: User

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
  })
  after(() => exchange.stop())

  it('when a limit order is valid, it is accepted with its reservation and a bookmark', async () => {
    const { body: request, hash } = signedBody(alice, { price: '100', quantity: '2', leverage: 5 })
    const { status, body } = await exchange.send(alice, 'POST', '/v0/orders', request)

    expect(status, JSON.stringify(body)).to.equal(200)
    expect(body.is_duplicate).to.equal(false)
    expect(body.fills).to.deep.equal([])
    expect(body.order).to.include({
      order_hash: hash,
      status: 'OPEN',
      market_id: 1,
      symbol: 'BTC-PERP',
      user_id: alice.userId,
      maker: alice.address,
      side: 'LONG',
      order_type: 'LIMIT',
      price: 100,
      price_e18_raw: e18('100').toString(),
      quantity: 2,
      remaining_quantity: 2,
      filled_quantity: 0,
      leverage: 5,
      salt: request.salt,
    })
    expect(body.read_after.shard_id).to.equal('m1.1')
    expect(body.order.order_id).to.equal(`1-${body.read_after.shard_seq}`)
    // Margin 200 / 5, fee allowance 200 x 0.0005.
    expect(body.order.reserved_margin).to.equal(40.1)
    expect(body.balance).to.include({ total: 1_000_000, available: 999_959.9, reserved: 40.1 })

    const row = await exchange.db
      .selectFrom('orders')
      .selectAll()
      .where('hash', '=', hash)
      .executeTakeFirstOrThrow()
    expect(row).to.include({ status: 'OPEN', filled: 0, settling: 0, signer: alice.address, openable: 2000 })
    const account = await withMirror(exchange.db)
      .selectFrom('accounts')
      .selectAll()
      .where('user_id', '=', alice.userId)
      .executeTakeFirstOrThrow()
    expect(account.reserved).to.equal(e18('40.1'))
    const logged = await exchange.db
      .selectFrom('journal')
      .selectAll()
      .where('shard', '=', 'm1')
      .where('seq', '=', row.seq)
      .executeTakeFirstOrThrow()
    expect(logged.row).to.include({
      kind: 'order_placed',
      hash,
      order_id: row.order_id,
      reserved: e18('40.1').toString(),
    })
  })

  it('when orders are market orders, of any kind of market or side, they are accepted', async () => {
    const allTerms = [
      { type: 'MARKET' },
      { type: 'MARKET', side: 'SHORT' },
      { market: future, price: '50', quantity: '1', side: 'SHORT' },
      { market: binary, price: '0.4', quantity: '10' },
      { market: binary, price: '0.6', quantity: '10', side: 'SHORT' },
    ] as const
    for (const terms of allTerms) {
      const { status, body } = await exchange.place(alice, terms)
      expect(status, JSON.stringify(body)).to.equal(200)
      expect(body.order.status).to.equal('OPEN')
    }
  })

  it('when amounts are decimal strings or raw, and defaults are omitted, the order is the same', async () => {
    const { body } = signedBody(alice, { price: '100.1', quantity: '1.001', leverage: 1 })
    const {
      quantity: _,
      leverage: __,
      expiration_seconds: ___,
      reduce_only: ____,
      signature_type: _____,
      ...rest
    } = body
    const request = { ...rest, price: 100.1, quantity_e18_raw: e18('1.001').toString() }
    const { status, body: answer } = await exchange.send(alice, 'POST', '/v0/orders', request)
    expect(status, JSON.stringify(answer)).to.equal(200)
    expect(answer.order).to.include({ price: 100.1, quantity: 1.001, leverage: 1, expiration_seconds: 0 })
  })

  it('when whole numbers are strings of digits, the order is accepted', async () => {
    const { body } = signedBody(alice, { leverage: 3, expiration: 4_000_000_000 })
    const request = { ...body, market_id: '1', leverage: '3', expiration_seconds: '4000000000' }
    const { status, body: answer } = await exchange.send(alice, 'POST', '/v0/orders', request)
    expect(status, JSON.stringify(answer)).to.equal(200)
    expect(answer.order).to.include({ market_id: 1, leverage: 3, expiration_seconds: 4_000_000_000 })
  })

  it('when a signed order is repeated, even after it has expired, the answer is the same order', async () => {
    const soon = Math.floor(Date.now() / 1000) + 3600
    const { body } = signedBody(alice, { expiration: soon })
    const first = await exchange.send(alice, 'POST', '/v0/orders', body)
    const traces = await exchange.state()
    const second = await exchange.send(alice, 'POST', '/v0/orders', body)
    expect(second.status).to.equal(200)
    expect(second.body.is_duplicate).to.equal(true)
    expect(second.body.order).to.deep.equal(first.body.order)
    expect(second.body.balance).to.deep.equal(first.body.balance)
    expect(await exchange.state()).to.deep.equal(traces)

    await exchange.db
      .updateTable('orders')
      .set({ status: 'EXPIRED', status_reason: 'EXPIRED', ended_at: Date.now(), reserved: 0n })
      .where('hash', '=', first.body.order.order_hash)
      .execute()
    await withMirror(exchange.db)
      .updateTable('accounts')
      .set((set) => ({ reserved: set('reserved', '-', BigInt(first.body.order.reserved_margin_e18_raw)) }))
      .where('user_id', '=', alice.userId)
      .execute()
    const third = await exchange.send(alice, 'POST', '/v0/orders', body)
    expect(third.status).to.equal(200)
    expect(third.body).to.deep.include({ is_duplicate: true })
    expect(third.body.order).to.include({ status: 'EXPIRED', status_reason: 'EXPIRED' })
  })

  it('when one order arrives many times at once, it is stored once', async () => {
    const { body, hash } = signedBody(alice)
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => exchange.send(alice, 'POST', '/v0/orders', body)),
    )
    expect(answers.map(({ status }) => status)).to.deep.equal(Array(20).fill(200))
    expect(answers.filter(({ body: { is_duplicate } }) => !is_duplicate)).to.have.length(1)
    expect(new Set(answers.map(({ body: answer }) => answer.order.order_id)).size).to.equal(1)
    const rows = await exchange.db.selectFrom('orders').select('order_id').where('hash', '=', hash).execute()
    expect(rows).to.have.length(1)
  })

  it('when another order has a used salt, it is rejected in the same market only', async () => {
    await exchange.place(alice, { salt: 777_777n, price: '100' })
    const traces = await exchange.state()
    const { status, body } = await exchange.place(alice, { salt: 777_777n, price: '99' })
    expect(status).to.equal(409)
    expect(body.details).to.include({
      code: 'SALT_USED',
      field: 'salt',
      received: '777777',
      outcome: 'not_placed',
    })
    expect(await exchange.state()).to.deep.equal(traces)
    const elsewhere = await exchange.place(alice, { salt: 777_777n, market: future, price: '50' })
    expect(elsewhere.status).to.equal(200)
  })

  it('when orders reduce a position, they reserve nothing, and the position is assigned to them once', async () => {
    const bob = await createUser(exchange.db, 'bob', '10')
    const position = { size: 1000, entry_notional: e18('100'), folded_margin: e18('100'), leverage: 1 }
    await withMirror(exchange.db)
      .insertInto('positions')
      .values({
        user_id: bob.userId,
        market_id: 1,
        ...position,
        matched_size: 1000,
        matched_entry_notional: e18('100'),
        matched_folded_margin: e18('100'),
        matched_leverage: 1,
      })
      .execute()
    const closing = await exchange.place(bob, { side: 'SHORT', quantity: '0.6' })
    expect(closing.body.order, JSON.stringify(closing.body)).to.include({
      status: 'OPEN',
      reserved_margin: 0,
    })
    expect(closing.body.balance).to.include({ total: 110, available: 10, position_margin: 100 })
    // 0.4 can still close, 0.05 opens: margin 5, and a fee allowance at 105 x 1.05 rounded up to a tick, 0.05 x 110.3 x 0.0005.
    const flipping = await exchange.place(bob, { side: 'SHORT', quantity: '0.45' })
    expect(flipping.body.order, JSON.stringify(flipping.body)).to.include({ reserved_margin: 5.0027575 })
    const reducing = await exchange.place(bob, { side: 'SHORT', quantity: '1', reduceOnly: true })
    expect(reducing.body.order).to.include({ status: 'OPEN', reserved_margin: 0 })
    const tooMuch = await exchange.place(bob, { side: 'SHORT', quantity: '0.1' })
    expect(tooMuch.body.details).to.include({ code: 'INSUFFICIENT_MARGIN', nearest_valid: '0.049' })
  })

  it('when a reduce-only order closes exactly the position, it may be smaller than the minimum', async () => {
    const carol = await createUser(exchange.db, 'carol')
    const matched = {
      matched_entry_notional: e18('0.5'),
      matched_folded_margin: e18('0.5'),
      matched_leverage: 1,
    }
    await withMirror(exchange.db)
      .insertInto('positions')
      .values({ user_id: carol.userId, market_id: 1, matched_size: 5, ...matched })
      .execute()
    const other = await exchange.place(carol, { side: 'SHORT', quantity: '0.004', reduceOnly: true })
    expect(other.body.details).to.include({ code: 'MIN_ORDER_SIZE', field: 'quantity' })
    const exact = await exchange.place(carol, { side: 'SHORT', quantity: '0.005', reduceOnly: true })
    expect(exact.status, JSON.stringify(exact.body)).to.equal(200)
  })

  it('when orders are placed, their ids follow the journal of the market without gaps', async () => {
    const dave = await createUser(exchange.db, 'dave')
    await Promise.all(Array.from({ length: 30 }, () => exchange.place(dave, { quantity: '0.01' })))
    const { head } = await exchange.db
      .selectFrom('shards')
      .select('head')
      .where('shard', '=', 'm1')
      .executeTakeFirstOrThrow()
    const seqs = await exchange.db
      .selectFrom('journal')
      .select('seq')
      .where('shard', '=', 'm1')
      .orderBy('seq')
      .execute()
    expect(seqs.map(({ seq }) => seq)).to.deep.equal(Array.from({ length: head }, (_, at) => at + 1))
    expect(perpetual.marketId).to.equal(1)
  })
})

import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { e18, future, perpetual } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import { expectConsistentAccounting } from '../support/accounting.ts'
import {
  type Answer,
  createUser,
  type ExchangeFixture,
  type OrderTerms,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { type BatchOptions, bodies, codesOf, newRequestId, sendBatch } from '../support/place-batch.ts'

describe('POST /v0/orders/place/batch', () => {
  let exchange: ExchangeFixture
  let alice: User
  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
  })
  after(async () => {
    await expectConsistentAccounting(exchange.db)
    await exchange.stop()
  })

  const send = (user: User, orders: unknown, batch?: BatchOptions): Promise<Answer> =>
    sendBatch(exchange, user, orders, batch)
  const reservedOf = async ({ userId }: User): Promise<bigint> =>
    (
      await withMirror(exchange.db)
        .selectFrom('accounts')
        .select('reserved')
        .where('user_id', '=', userId)
        .executeTakeFirstOrThrow()
    ).reserved

  it('when a batch has fifty orders of one market, it accepts them in order in one transaction with one balance', async () => {
    const bob = await createUser(exchange.db, 'bob')
    const allTerms = Array.from(
      { length: 50 },
      (_, at): OrderTerms => ({ price: String(95 + (at % 10)), quantity: '0.1' }),
    )
    const { status, body } = await send(bob, bodies(bob, allTerms), { id: 'fifty' })
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(body).to.include({ client_request_id: 'fifty', mode: 'best_effort', is_duplicate: false })
    expect([body.accepted, body.refused, body.results.length]).to.deep.equal([50, 0, 50])
    const seqs = body.results.map((result: { read_after: { shard_seq: string } }) =>
      Number(result.read_after.shard_seq),
    )
    expect(seqs).to.deep.equal(Array.from({ length: 50 }, (_, at) => seqs[0] + at))
    expect(body.results.map((result: { order: { price: number } }) => result.order.price)).to.deep.equal(
      allTerms.map(({ price }) => Number(price)),
    )
    expect(body.results[0]).to.have.all.keys('order', 'is_duplicate', 'read_after')
    expect(body.read_after).to.deep.equal(body.results[49].read_after)
    expect(BigInt(body.balance.reserved_e18_raw)).to.equal(await reservedOf(bob))
  })

  it('when the balance covers only some orders, it accepts them in order until the balance is reserved', async () => {
    // Each order reserves 100.05: the balance covers two.
    const carol = await createUser(exchange.db, 'carol', '250')
    const answer = await send(carol, bodies(carol, [{}, {}, {}, { quantity: '0.4' }]))
    expect(codesOf(answer)).to.deep.equal([null, null, 'INSUFFICIENT_MARGIN', null])
    expect([answer.body.accepted, answer.body.refused]).to.deep.equal([3, 1])
    expect(answer.body.results[2].error.details).to.include({
      field: 'quantity',
      nearest_valid: '0.498',
      outcome: 'not_placed',
    })
    expect(answer.body.results[2].error.details).not.to.have.property('request_id')
    expect(answer.body.balance.available).to.be.closeTo(250 - 2.4 * 100.05, 1e-9)
  })

  it('when several orders reduce one position, it assigns the position to them once', async () => {
    const dave = await createUser(exchange.db, 'dave', '1')
    const matched = {
      matched_entry_notional: e18('100'),
      matched_folded_margin: e18('100'),
      matched_leverage: 1,
    }
    await withMirror(exchange.db)
      .insertInto('positions')
      .values({ user_id: dave.userId, market_id: 1, matched_size: 1000, ...matched })
      .execute()
    const allTerms: OrderTerms[] = [
      { side: 'SHORT', quantity: '0.6' },
      { side: 'SHORT', quantity: '0.4' },
      { side: 'SHORT', quantity: '0.1' },
    ]
    expect(codesOf(await send(dave, bodies(dave, allTerms)))).to.deep.equal([
      null,
      null,
      'INSUFFICIENT_MARGIN',
    ])
  })

  it('when a batch repeats an order or a salt, it returns the duplicate or rejects the salt', async () => {
    const erin = await createUser(exchange.db, 'erin')
    const first = signedBody(erin, { salt: 5n }).body
    const other = signedBody(erin, { salt: 5n, price: '99' }).body
    const answer = await send(erin, [first, first, other])
    expect(codesOf(answer)).to.deep.equal([null, null, 'SALT_USED'])
    expect(
      answer.body.results.slice(0, 2).map((result: { is_duplicate: boolean }) => result.is_duplicate),
    ).to.deep.equal([false, true])
    const again = await exchange.send(erin, 'POST', '/v0/orders', first)
    expect(again.body).to.include({ is_duplicate: true })
  })

  it('when an atomic batch is rolled back, its error does not name an order of the batch', async () => {
    const ivan = await createUser(exchange.db, 'ivan')
    const orders = [
      signedBody(ivan).body,
      signedBody(ivan, { salt: 5n }).body,
      signedBody(ivan, { salt: 5n, price: '99' }).body,
    ]
    const { status, body } = await send(ivan, orders, { mode: 'atomic' })
    expect([status, body.details.code]).to.deep.equal([409, 'SALT_USED'])
    expect(body.details).to.include({ field: 'orders.2.salt', same_as: 'orders.1' })
    expect(JSON.stringify(body)).to.not.include('order_id').and.not.include('order_hash')
    const known = (await exchange.send(ivan, 'POST', '/v0/orders', orders[1])).body.order.order_id
    const stands = await send(ivan, [orders[2]], { mode: 'atomic' })
    expect(stands.body.details).to.include({ code: 'SALT_USED', order_id: known })
  })

  it('when a batch reaches the limit of open orders, it rejects the orders beyond it', async () => {
    const frank = await createUser(exchange.db, 'frank')
    for (let batch = 0; batch < 9; batch++) {
      const allTerms = Array.from({ length: 50 }, (): OrderTerms => ({ quantity: '0.01' }))
      expect((await send(frank, bodies(frank, allTerms))).body.accepted).to.equal(50)
    }
    await send(
      frank,
      bodies(
        frank,
        Array.from({ length: 48 }, () => ({ quantity: '0.01' })),
      ),
    )
    const answer = await send(
      frank,
      bodies(
        frank,
        Array.from({ length: 4 }, () => ({ quantity: '0.01' })),
      ),
    )
    expect(codesOf(answer)).to.deep.equal([null, null, 'OPEN_ORDER_LIMIT', 'OPEN_ORDER_LIMIT'])
  })

  it('when a batch has orders of several markets, it commits them in one transaction with one bookmark for all', async () => {
    const gina = await createUser(exchange.db, 'gina')
    await exchange.project()
    const allTerms: OrderTerms[] = [{}, { market: future, price: '50' }, { price: '99' }]
    const { body } = await send(gina, bodies(gina, allTerms))
    expect(
      body.results.map((result: { read_after: { shard_id: string } }) => result.read_after.shard_id),
    ).to.deep.equal(['m1.1', 'm2.1', 'm1.1'])
    expect(body.read_after.shard_id).to.equal('accounts.1')
    const { row } = await exchange.db
      .selectFrom('journal')
      .select('row')
      .where('shard', '=', 'accounts')
      .where('seq', '=', Number(body.read_after.shard_seq))
      .executeTakeFirstOrThrow()
    const [, two, one] = body.results.map((result: { read_after: { shard_seq: string } }) =>
      Number(result.read_after.shard_seq),
    )
    expect(row).to.deep.include({
      kind: 'command_spanned',
      user_id: gina.userId,
      shards: { m1: one, m2: two },
    })

    const read = `/v0/orders/by-user/${gina.userId}?read_after_shard_id=accounts.1&read_after_shard_seq=${body.read_after.shard_seq}`
    const waiting = exchange.get(gina, read)
    await exchange.project('accounts', 'm1')
    expect(
      (
        await exchange.db
          .selectFrom('read.places')
          .selectAll()
          .where('shard', '=', 'accounts')
          .executeTakeFirst()
      )?.seq,
    ).to.be.at.least(Number(body.read_after.shard_seq))
    expect(await Promise.race([waiting, sleep(300, 'waiting for m2')])).to.equal('waiting for m2')
    await exchange.project()
    expect((await waiting).body.orders).to.have.length(3)
  })

  it('when items have an invalid form, signature, market or account, it rejects each by itself', async () => {
    const good = signedBody(alice).body
    const items = [
      good,
      { ...signedBody(alice).body, usd_amount: 5 },
      { ...signedBody(alice).body, side: undefined },
      { ...signedBody(alice).body, price: 'cheap' },
      signedBody(alice, { price: '100.04' }).body,
      { ...signedBody(alice).body, quantity: '2' },
      { ...signedBody(alice).body, market_id: 99 },
      signedBody(alice, { price: '106' }).body,
    ]
    const answer = await send(alice, items)
    expect(answer.status, JSON.stringify(answer.body)).to.equal(200)
    expect(codesOf(answer)).to.deep.equal([
      null,
      'UNKNOWN_FIELD',
      'MISSING_FIELD',
      'INVALID_FIELD',
      'TICK_SIZE',
      'SIGNATURE_MISMATCH',
      'MARKET_NOT_FOUND',
      'PRICE_BAND',
    ])
    expect(answer.body.results[1].error.details).to.include({ field: 'usd_amount' })
    expect(answer.body.results[1].error.details.hint).to.match(/estimate/)
    expect(answer.body.results[5].error.details.hint).to.be.a('string')
    expect(answer.body.accepted).to.equal(1)
  })

  it('when every item is rejected, it answers 200 with the errors', async () => {
    const { status, body } = await send(alice, [{ ...signedBody(alice).body, market_id: 99 }])
    expect([status, body.accepted, body.refused]).to.deep.equal([200, 0, 1])
    expect(body.read_after.shard_id).to.equal('accounts.1')
    expect(body.balance.total).to.equal(1_000_000)
  })

  it('when one market accepts no orders, it rejects the items of that market only', async () => {
    await exchange.db.updateTable('markets').set({ mode: 'halted' }).where('market_id', '=', 2).execute()
    const answer = await send(alice, bodies(alice, [{ market: future, price: '50' }, {}]))
    await exchange.db.updateTable('markets').set({ mode: 'open' }).where('market_id', '=', 2).execute()
    expect(codesOf(answer)).to.deep.equal(['MARKET_NOT_OPEN', null])
    expect(answer.body.results[0].error.details.retryable).to.equal(true)
  })

  describe('atomic', () => {
    it('when an item is rejected, it places nothing in any market and lists all errors', async () => {
      const hans = await createUser(exchange.db, 'hans', '250')
      const before = await exchange.state()
      const allTerms: OrderTerms[] = [
        {},
        { market: future, price: '50' },
        { quantity: '3' },
        { price: '99', quantity: '2' },
        { price: '107' },
      ]
      const answer = await send(hans, bodies(hans, allTerms), { mode: 'atomic' })
      expect(answer.status).to.equal(400)
      expect(answer.body.details).to.include({
        code: 'INSUFFICIENT_MARGIN',
        field: 'orders.2.quantity',
        index: 2,
        outcome: 'not_placed',
      })
      expect(
        answer.body.details.errors.map((error: { index: number; details: { code: string } }) => [
          error.index,
          error.details.code,
        ]),
      ).to.deep.equal([
        [2, 'INSUFFICIENT_MARGIN'],
        [3, 'INSUFFICIENT_MARGIN'],
        [4, 'PRICE_BAND'],
      ])
      expect(await exchange.state()).to.deep.equal(before)
      // The same id can be used again, because the rejected batch did not consume it.
      const id = newRequestId()
      expect(
        (await send(hans, bodies(hans, [{}, { quantity: '3' }]), { mode: 'atomic', id })).status,
      ).to.equal(400)
      expect((await send(hans, bodies(hans, [{}]), { mode: 'atomic', id })).status).to.equal(200)
    })

    it('when an order is invalid by itself, it rejects the batch before checking the account', async () => {
      const before = await exchange.state()
      const orders = [
        signedBody(alice).body,
        { ...signedBody(alice).body, leverage: 99 },
        { ...signedBody(alice).body, price: '98' },
      ]
      const answer = await send(alice, orders, { mode: 'atomic' })
      expect(answer.body.details).to.include({ code: 'LEVERAGE_CAP', field: 'orders.1.leverage', index: 1 })
      expect(answer.body.details.errors).to.have.length(2)
      expect(await exchange.state()).to.deep.equal(before)
    })

    it('when the market accepts no orders, it answers 503, and the batch can be repeated', async () => {
      await exchange.db.updateTable('markets').set({ mode: 'halted' }).where('market_id', '=', 2).execute()
      const orders = bodies(alice, [{}, { market: future, price: '50' }])
      const id = newRequestId()
      const refused = await send(alice, orders, { mode: 'atomic', id })
      expect([refused.status, refused.body.details.code, refused.headers['retry-after']]).to.deep.equal([
        503,
        'MARKET_NOT_OPEN',
        '5',
      ])
      await exchange.db.updateTable('markets').set({ mode: 'open' }).where('market_id', '=', 2).execute()
      expect((await send(alice, orders, { mode: 'atomic', id })).body).to.include({
        accepted: 2,
        is_duplicate: false,
      })
    })
  })

  const malformed: readonly (readonly [string, Record<string, unknown>, string, string])[] = [
    ['no client_request_id', { client_request_id: undefined }, 'MISSING_FIELD', 'client_request_id'],
    ['an empty client_request_id', { client_request_id: '' }, 'INVALID_FIELD', 'client_request_id'],
    [
      'a client_request_id of 101 characters',
      { client_request_id: 'x'.repeat(101) },
      'INVALID_FIELD',
      'client_request_id',
    ],
    ['no mode', { mode: undefined }, 'MISSING_FIELD', 'mode'],
    ['another mode', { mode: 'all' }, 'INVALID_FIELD', 'mode'],
    ['no orders', { orders: [] }, 'INVALID_FIELD', 'orders'],
    ['orders that are none', { orders: [5] }, 'INVALID_FIELD', 'orders.0'],
    ['an unknown field', { dry_run: true }, 'UNKNOWN_FIELD', 'dry_run'],
  ]
  for (const [what, changes, code, field] of malformed) {
    it(`when the request has ${what}, it answers ${code}`, async () => {
      const body = {
        client_request_id: newRequestId(),
        mode: 'atomic',
        orders: bodies(alice, [{}]),
        ...changes,
      }
      const answer = await exchange.send(alice, 'POST', '/v0/orders/place/batch', body)
      expect(
        [answer.status, answer.body.details?.code, answer.body.details?.field],
        JSON.stringify(answer.body),
      ).to.deep.equal([400, code, field])
    })
  }

  it('when a batch has 51 orders, it rejects the batch and states the number', async () => {
    const { status, body } = await send(
      alice,
      bodies(
        alice,
        Array.from({ length: 51 }, () => ({})),
      ),
    )
    expect(status).to.equal(400)
    expect(body.details).to.include({
      code: 'INVALID_FIELD',
      field: 'orders',
      expected: '1 to 50 signed orders',
      received: '51 items',
    })
  })

  it('when the credential is missing, it answers 401', async () => {
    const body = { client_request_id: newRequestId(), mode: 'atomic', orders: bodies(alice, [{}]) }
    expect((await exchange.send(null, 'POST', '/v0/orders/place/batch', body)).status).to.equal(401)
  })

  it('when all signatures are wrong, it explains the first three and only compares the rest', async () => {
    const orders = bodies(
      alice,
      Array.from({ length: 50 }, () => ({})),
    ).map((body) => ({ ...body, side: 'SHORT' }))
    const answer = await send(alice, orders)
    const hints: string[] = answer.body.results.map(
      (result: { error: { details: { hint: string } } }) => result.error.details.hint,
    )
    expect(codesOf(answer)).to.deep.equal(Array(50).fill('SIGNATURE_MISMATCH'))
    expect(hints.slice(0, 3)).to.deep.equal(
      Array(3).fill('The signed side is the opposite of the submitted one.'),
    )
    expect(new Set(hints.slice(3)).size).to.equal(1)
    expect(hints[3]).to.match(/digest/)
  })

  it('when the orders are signed by another account, it rejects them', async () => {
    const mallory = await createUser(exchange.db, 'mallory')
    expect(codesOf(await send(mallory, bodies(alice, [{}])))).to.deep.equal(['SIGNATURE_MISMATCH'])
    expect(perpetual.marketId).to.equal(1)
  })
})

import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { future } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import { expectConsistentAccounting } from '../support/accounting.ts'
import {
  type Answer,
  createUser,
  type ExchangeFixture,
  type OrderTerms,
  startExchange,
  startSecondApi,
  type User,
} from '../support/exchange-fixture.ts'

let ids = 0
const newId = (): string => `cancel-${++ids}`
const UNKNOWN = `0x${'ab'.repeat(32)}`

describe('cancelling several orders', () => {
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

  const place = async (user: User, allTerms: readonly OrderTerms[]): Promise<string[]> => {
    const hashes: string[] = []
    for (const terms of allTerms) {
      const { status, body } = await exchange.place(user, terms)
      expect(status, JSON.stringify(body)).to.equal(200)
      hashes.push(body.order.order_hash)
    }
    return hashes
  }
  const batch = (user: User, orderHashes: unknown, more: Record<string, unknown> = {}): Promise<Answer> =>
    exchange.send(user, 'POST', '/v0/orders/cancel/batch', {
      client_request_id: newId(),
      orderHashes,
      ...more,
    })
  const all = (user: User, body: unknown = {}): Promise<Answer> =>
    exchange.send(user, 'POST', '/v0/orders/cancel/all', body)
  const reservedOf = async ({ userId }: User): Promise<bigint> =>
    (
      await withMirror(exchange.db)
        .selectFrom('accounts')
        .select('reserved')
        .where('user_id', '=', userId)
        .executeTakeFirstOrThrow()
    ).reserved
  interface Result {
    readonly error?: { readonly details: { readonly code: string } }
    readonly order: { readonly status: string }
    readonly cancelled: boolean
    readonly is_duplicate: boolean
  }
  const summary = ({ body }: Answer): unknown[] =>
    body.results.map((result: Result) =>
      result.error ? result.error.details.code : [result.order.status, result.cancelled, result.is_duplicate],
    )
  const CANCELLED = ['CANCELLED', true, false]

  describe('POST /v0/orders/cancel/batch', () => {
    it('when the orders are in several markets, it cancels them in one transaction and returns their current state', async () => {
      const hashes = await place(alice, [{}, { market: future, price: '50' }, { price: '99' }])
      const { status, body } = await batch(alice, [...hashes, UNKNOWN, hashes[0]], { reason: 'enough' })
      expect(status, JSON.stringify(body)).to.equal(200)
      expect(summary({ status, body, headers: {} })).to.deep.equal([
        CANCELLED,
        CANCELLED,
        CANCELLED,
        'ORDER_NOT_FOUND',
        ['CANCELLED', true, true],
      ])
      expect(body.is_duplicate).to.equal(false)
      expect(body.results.map((result: { order_hash: string }) => result.order_hash)).to.deep.equal([
        ...hashes,
        UNKNOWN,
        hashes[0],
      ])
      expect(body.results[0].order).to.include({
        status_reason: 'USER_CANCELLED',
        cancel_reason: 'enough',
        reserved_margin: 0,
      })
      expect(body.read_after.shard_id).to.equal('accounts.1')
      expect(await reservedOf(alice)).to.equal(0n)
    })

    it('when all orders are in one market, the bookmark is one of that market', async () => {
      const [hash] = await place(alice, [{}])
      const { body } = await batch(alice, [hash?.toUpperCase().replace('0X', '0x')])
      expect(body.read_after).to.deep.equal(body.results[0].read_after)
      expect(body.read_after.shard_id).to.equal('m1.1')
    })

    it('when it is repeated, it returns the first results with the current orders and has no further effect', async () => {
      const hashes = await place(alice, [{}, { price: '99' }])
      const [settling] = await place(alice, [{ quantity: '1' }])
      await exchange.db
        .updateTable('orders')
        .set({ settling: 400 })
        .where('hash', '=', settling as string)
        .execute()
      const late = `0x${'cd'.repeat(32)}`
      const request = { client_request_id: 'retried', orderHashes: [...hashes, settling, late] }
      const first = await batch(alice, request.orderHashes, request)
      expect(summary(first)).to.deep.equal([
        CANCELLED,
        CANCELLED,
        ['CANCEL_PENDING_FINALIZE', true, false],
        'ORDER_NOT_FOUND',
      ])
      const end = {
        settling: 0,
        filled: 400,
        status: 'CANCELLED',
        status_reason: 'USER_CANCELLED',
        ended_at: Date.now(),
      } as const
      await exchange.db
        .updateTable('orders')
        .set(end)
        .set({ closing_reason: null })
        .where('hash', '=', settling as string)
        .execute()
      const traces = await exchange.state()
      const second = await batch(alice, request.orderHashes, request)
      expect(second.body.is_duplicate).to.equal(true)
      expect(summary(second)).to.deep.equal([
        CANCELLED,
        CANCELLED,
        ['CANCELLED', true, false],
        'ORDER_NOT_FOUND',
      ])
      expect(second.body.results[2].order.filled_quantity).to.equal(0.4)
      expect(second.body.read_after).to.deep.equal(first.body.read_after)
      expect(await exchange.state()).to.deep.equal(traces)
      const other = await batch(alice, hashes, { client_request_id: 'retried' })
      expect([other.status, other.body.details.code]).to.deep.equal([409, 'CLIENT_REQUEST_REUSED'])
    })

    it('when its id was used for a placement, it is rejected', async () => {
      const [hash] = await place(alice, [{}])
      await batch(alice, [hash], { client_request_id: 'one name' })
      const body = { client_request_id: 'one name', mode: 'atomic', orders: [{}] }
      expect((await exchange.send(alice, 'POST', '/v0/orders/place/batch', body)).body.details.code).to.equal(
        'CLIENT_REQUEST_REUSED',
      )
    })

    it('when it arrives many times at once at two processes, it is executed once', async () => {
      const second = await startSecondApi(exchange)
      const hashes = await place(alice, [{}, { market: future, price: '50' }])
      const body = { client_request_id: newId(), orderHashes: hashes }
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, at) =>
          (at % 2 ? exchange : second).send(alice, 'POST', '/v0/orders/cancel/batch', body),
        ),
      )
      expect(answers.map(summary)).to.deep.equal(Array(10).fill([CANCELLED, CANCELLED]))
      expect(answers.filter(({ body: { is_duplicate } }) => !is_duplicate)).to.have.length(1)
      await second.stop()
    })

    it('when some orders belong to another account, it rejects these only', async () => {
      const bob = await createUser(exchange.db, 'bob')
      const [hers] = await place(alice, [{}])
      const [bobs] = await place(bob, [{}])
      expect(summary(await batch(bob, [hers, bobs]))).to.deep.equal(['NOT_YOURS', CANCELLED])
      expect(summary(await batch(alice, [hers]))).to.deep.equal([CANCELLED])
    })

    const malformed: readonly (readonly [string, Record<string, unknown>, string, string, RegExp?])[] = [
      [
        'no client_request_id',
        { client_request_id: undefined },
        'MISSING_FIELD',
        'client_request_id',
        /reuse/,
      ],
      ['a cancelSignature', { cancelSignature: '0x' }, 'UNKNOWN_FIELD', 'cancelSignature', /no signature/],
      ['order_hashes', { order_hashes: [UNKNOWN] }, 'UNKNOWN_FIELD', 'order_hashes', /orderHashes/],
      ['no hashes', { orderHashes: [] }, 'INVALID_FIELD', 'orderHashes'],
      ['101 hashes', { orderHashes: Array(101).fill(UNKNOWN) }, 'INVALID_FIELD', 'orderHashes'],
      ['a hash that is none', { orderHashes: [UNKNOWN, '0x12'] }, 'INVALID_FIELD', 'orderHashes.1'],
      ['a reason of 201 characters', { reason: 'x'.repeat(201) }, 'INVALID_FIELD', 'reason'],
      ['a reason with a NUL', { reason: 'a\0b' }, 'INVALID_FIELD', 'reason'],
    ]
    for (const [what, changes, code, field, hint] of malformed) {
      it(`when the request has ${what}, it answers ${code}`, async () => {
        const { status, body } = await batch(alice, [UNKNOWN], changes)
        expect([status, body.details?.code, body.details?.field], JSON.stringify(body)).to.deep.equal([
          400,
          code,
          field,
        ])
        if (hint) expect(body.details.hint).to.match(hint)
      })
    }

    it('when it has 100 hashes, it cancels all of them', async () => {
      expect((await batch(alice, Array(100).fill(UNKNOWN))).status).to.equal(200)
    })
  })

  describe('POST /v0/orders/cancel/all', () => {
    it('when orders are live in several markets, it cancels and lists all of them', async () => {
      const carol = await createUser(exchange.db, 'carol')
      const hashes = await place(carol, [
        {},
        { market: future, price: '50' },
        { type: 'STOP_LIMIT', trigger: '110', price: '111' },
      ])
      const [settling] = await place(carol, [{ quantity: '1' }])
      await exchange.db
        .updateTable('orders')
        .set({ settling: 400 })
        .where('hash', '=', settling as string)
        .execute()
      const answer = await all(carol, { reason: 'storm' })
      expect(answer.status, JSON.stringify(answer.body)).to.equal(200)
      expect(answer.body).to.include({ cancelled_count: 4, is_duplicate: false })
      expect(
        answer.body.results.map((result: { order_hash: string }) => result.order_hash).sort(),
      ).to.deep.equal([...hashes, settling].sort())
      expect(
        answer.body.results.every(
          (result: { order: { cancel_reason: string } }) => result.order.cancel_reason === 'storm',
        ),
      ).to.equal(true)
      expect(answer.body.read_after.shard_id).to.equal('accounts.1')

      const again = await all(carol)
      expect(again.body).to.include({ cancelled_count: 0, is_duplicate: true })
      expect(summary(again)).to.deep.equal([['CANCEL_PENDING_FINALIZE', true, true]])
    })

    it('when a market is named, it cancels the orders of that market only', async () => {
      const dave = await createUser(exchange.db, 'dave')
      await place(dave, [{}, { market: future, price: '50' }])
      const answer = await all(dave, { market_id: '2' })
      expect(answer.body.cancelled_count).to.equal(1)
      expect(answer.body.results[0].order.market_id).to.equal(2)
      expect(answer.body.read_after.shard_id).to.equal('m2.1')
    })

    it('when no order is live, it answers that there was nothing to cancel', async () => {
      const erin = await createUser(exchange.db, 'erin')
      const traces = await exchange.state()
      const { status, body } = await all(erin)
      expect([status, body.cancelled_count, body.is_duplicate, body.results]).to.deep.equal([
        200,
        0,
        true,
        [],
      ])
      expect(await exchange.state()).to.deep.equal(traces)
    })

    it('when nothing is left to cancel, its bookmark covers the orders that ended before', async () => {
      const wanda = await createUser(exchange.db, 'wanda')
      await place(wanda, [{}])
      const first = (await all(wanda)).body
      expect(first.cancelled_count).to.equal(1)
      expect((await all(wanda)).body).to.include({ cancelled_count: 0, is_duplicate: true })
      expect((await all(wanda)).body.read_after).to.deep.equal(first.read_after)
    })

    it('when placements before it are not answered yet, it cancels their orders as well', async () => {
      const frank = await createUser(exchange.db, 'frank')
      await place(frank, [{}])
      const placing = Array.from({ length: 20 }, () => exchange.place(frank, { quantity: '0.01' }))
      await Promise.race(placing)
      const answer = await all(frank, { market_id: 1 })
      const placed = await Promise.all(placing)
      expect(placed.every(({ status }) => status === 200)).to.equal(true)
      expect(answer.status).to.equal(200)
      const live = await exchange.db
        .selectFrom('orders')
        .select('order_id')
        .where('user_id', '=', frank.userId)
        .where('ended_at', 'is', null)
        .execute()
      expect(answer.body.cancelled_count + live.length).to.equal(21)
    })

    it('when the market is halted, the oracle stale and the chain unseen, it cancels', async () => {
      const gina = await createUser(exchange.db, 'gina')
      const hashes = await place(gina, [{}, {}, {}])
      await exchange.db.updateTable('markets').set({ mode: 'halted' }).execute()
      await exchange.db.updateTable('oracle_reports').set({ observed_at: 1 }).execute()
      await exchange.db.updateTable('chain_progress').set({ completed_at: 1 }).execute()
      const answers = [
        await exchange.cancel(gina, hashes[0] as string),
        await batch(gina, [hashes[1]]),
        await all(gina),
      ]
      await exchange.db.updateTable('markets').set({ mode: 'open' }).execute()
      await exchange.db.updateTable('oracle_reports').set({ observed_at: Date.now() }).execute()
      await exchange.db.updateTable('chain_progress').set({ completed_at: Date.now() }).execute()
      expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200])
      expect(answers[2]?.body.cancelled_count).to.equal(1)
    })

    it('when the market does not exist or a field is unknown, it is rejected', async () => {
      expect((await all(alice, { market_id: 99 })).body.details).to.include({
        code: 'MARKET_NOT_FOUND',
        field: 'market_id',
      })
      expect((await all(alice, { side: 'LONG' })).body.details).to.include({
        code: 'UNKNOWN_FIELD',
        field: 'side',
      })
      expect((await all(alice, { reason: 5 })).body.details).to.include({
        code: 'INVALID_FIELD',
        field: 'reason',
      })
    })
  })

  describe('the dead-man switch', () => {
    const arm = (user: User, timeout_seconds: unknown): Promise<Answer> =>
      exchange.send(user, 'POST', '/v0/orders/cancel/all-after', { timeout_seconds })
    const show = (user: User): Promise<Answer> => exchange.get(user, '/v0/orders/cancel/all-after')
    const stored = ({ userId }: User) =>
      exchange.db.selectFrom('cancel_switches').selectAll().where('user_id', '=', userId).executeTakeFirst()

    it('when it is armed, re-armed and disarmed, it counts from the server time each time', async () => {
      const before = Date.now()
      const { status, body } = await arm(alice, 5)
      const after = Date.now()
      expect(status, JSON.stringify(body)).to.equal(200)
      expect(body).to.include({ armed: true, timeout_seconds: 5, remaining_seconds: 5 })
      // The api follows the database's clock to within half the longest round trip of a reading.
      expect(Date.parse(body.server_time)).to.be.within(before - 60, after + 60)
      expect(Date.parse(body.fire_at) - Date.parse(body.server_time)).to.equal(5000)
      expect(await stored(alice)).to.deep.include({ timeout_seconds: 5, fire_at: Date.parse(body.fire_at) })

      await arm(alice, 900)
      const { body: shown } = await show(alice)
      expect(shown).to.include({ armed: true, timeout_seconds: 900 })
      expect(shown.remaining_seconds).to.be.within(800, 900)

      const disarmed = await arm(alice, 0)
      expect(disarmed.body).to.include({
        armed: false,
        fire_at: null,
        remaining_seconds: null,
        timeout_seconds: null,
      })
      expect((await show(alice)).body.armed).to.equal(false)
      expect((await arm(alice, 0)).status).to.equal(200)
      expect(await stored(alice)).to.equal(undefined)
    })

    it('when one account arms it, other accounts are not affected', async () => {
      const hans = await createUser(exchange.db, 'hans')
      await arm(alice, 60)
      expect((await show(hans)).body.armed).to.equal(false)
      await arm(alice, 0)
    })

    for (const seconds of [-1, 1, 4, 901, 5.5, '5', null, undefined]) {
      it(`when the timeout is ${JSON.stringify(seconds) ?? 'missing'}, it is rejected`, async () => {
        const { status, body } = await arm(alice, seconds)
        expect([status, body.details.field]).to.deep.equal([400, 'timeout_seconds'])
        expect(body.details.expected).to.equal('5 to 900, or 0 to disarm')
      })
    }

    it('when the credential is missing, it answers 401', async () => {
      expect(
        (await exchange.send(null, 'POST', '/v0/orders/cancel/all-after', { timeout_seconds: 5 })).status,
      ).to.equal(401)
      expect((await exchange.get(null, '/v0/orders/cancel/all-after')).status).to.equal(401)
    })
  })
})

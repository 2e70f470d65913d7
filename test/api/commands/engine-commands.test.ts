/** The api over an engine: commands, their repetitions, what the engine has released, and replies without an answer. */
import { expect } from 'chai'
import type { KyselyPlugin } from 'kysely'
import { after, afterEach, before, describe, it } from 'mocha'
import { createLogIn } from '../../../api/auth/log-in.ts'
import { createConnectionSwitches } from '../../../api/cancel-switch/connection-switches.ts'
import { createEngineSwitches } from '../../../api/cancel-switch/switch-store.ts'
import { createFindBySalt } from '../../../api/commands/command-identity.ts'
import { createFindReleased } from '../../../api/commands/released-salts.ts'
import { createEngineCalls } from '../../../api/engine-reply.ts'
import type { Address, Millis, Seq } from '../../../domain/units.ts'
import { future, perpetual } from '../../support/markets.ts'
import { expectConsistentAccounting } from '../support/accounting.ts'
import {
  type Answer,
  codeOf,
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  startSecondApi,
  type User,
} from '../support/exchange-fixture.ts'
import { bodies, newRequestId, sendBatch } from '../support/place-batch.ts'
import { until } from '../support/wait.ts'

const LOGGER = { error() {}, warn() {} }
const UNKNOWN = { none: 'unknown' } as const
const OVERLOADED = { none: 'overloaded' } as const

describe('commands over the engine', () => {
  let exchange: ExchangeFixture
  let alice: User
  let bob: User
  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    bob = await createUser(exchange.db, 'bob')
  })
  afterEach(() => expect(exchange.engine.faults).to.deep.equal([]))
  after(() => exchange.stop())

  const post = (user: User, body: Record<string, unknown>): Promise<Answer> =>
    exchange.send(user, 'POST', '/v0/orders', body)
  const outcomeOf = ({ body }: Answer): string => body.details.outcome
  const placed = async (user: User, terms = {}): Promise<string> =>
    (await exchange.place(user, terms)).body.order.order_hash

  describe('while the engine has every order', () => {
    it('when an order is placed, repeated and cancelled, each answer has its state and the tables have it', async () => {
      const { body, hash } = signedBody(alice)
      const first = await post(alice, body)
      expect([first.status, first.body.order.status, first.body.is_duplicate]).to.deep.equal([
        200,
        'OPEN',
        false,
      ])
      expect(first.body.order.maker).to.equal(alice.address)
      const again = await post(alice, body)
      expect(again.body.order).to.deep.equal(first.body.order)
      expect(again.body.is_duplicate).to.equal(true)
      const cancel = await exchange.cancel(alice, hash, { reason: 'changed my mind' })
      expect(cancel.body.order).to.include({ status: 'CANCELLED', cancel_reason: 'changed my mind' })
      expect((await exchange.cancel(alice, hash)).body).to.include({ cancelled: true, is_duplicate: true })
      const row = await exchange.db
        .selectFrom('orders')
        .selectAll()
        .where('hash', '=', hash)
        .executeTakeFirst()
      expect(row).to.include({ status: 'CANCELLED', note: 'changed my mind' })
      await expectConsistentAccounting(exchange.db)
    })

    it('when a batch is repeated, the answer is the first one, also with its refused orders', async () => {
      const orders = bodies(alice, [{}, { quantity: '0' }, { price: '1000000' }])
      const id = newRequestId()
      const first = await sendBatch(exchange, alice, orders, { id })
      expect(first.body).to.include({ accepted: 1, refused: 2, is_duplicate: false })
      const again = await sendBatch(exchange, alice, orders, { id })
      expect(again.body).to.deep.equal({ ...first.body, is_duplicate: true })
      const other = await sendBatch(exchange, alice, bodies(alice, [{}]), { id })
      expect(codeOf(other)).to.deep.equal([409, 'CLIENT_REQUEST_REUSED'])
    })

    it('when a batch of cancels is repeated, it shows the orders as they are', async () => {
      const hash = await placed(alice)
      const request = { client_request_id: newRequestId(), orderHashes: [hash, `0x${'0e'.repeat(32)}`] }
      const cancel = () => exchange.send(alice, 'POST', '/v0/orders/cancel/batch', request)
      const first = await cancel()
      expect(first.body.results[0].order.status).to.equal('CANCELLED')
      expect(first.body.results[1].error.details.code).to.equal('ORDER_NOT_FOUND')
      expect((await cancel()).body).to.deep.equal({ ...first.body, is_duplicate: true })
    })

    it('when an order is placed and cancelled without waiting, the cancel finds it', async () => {
      const { body, hash } = signedBody(alice)
      const [place, cancel] = await Promise.all([post(alice, body), exchange.cancel(alice, hash)])
      expect([place.status, cancel.status]).to.deep.equal([200, 200])
      expect(cancel.body.order.status).to.equal('CANCELLED')
    })

    it('when all orders are cancelled in two markets, the engine gets one command', async () => {
      const hashes = [
        await placed(bob, { market: perpetual }),
        await placed(bob, { market: future, price: '50' }),
      ]
      const before = exchange.engine.arrived.length
      const { body } = await exchange.send(bob, 'POST', '/v0/orders/cancel/all', {})
      expect(body.cancelled_count).to.equal(2)
      expect(body.results.map((one: { order_hash: string }) => one.order_hash)).to.have.members(hashes)
      expect(body.read_after.shard_id).to.match(/^accounts\./)
      expect(exchange.engine.arrived.slice(before).map(({ kind }) => kind)).to.deep.equal(['cancel_all'])
    })
  })

  describe('when the engine has no answer', () => {
    it('when it is overloaded or has ended, the order is not placed and may be repeated', async () => {
      for (const none of ['overloaded', 'not_executed'] as const) {
        exchange.engine.faults.push({ reply: { none }, isExecuted: false })
        const answer = await exchange.place(alice)
        expect(codeOf(answer)).to.deep.equal([503, 'OVERLOADED'])
        expect([outcomeOf(answer), answer.headers['retry-after']]).to.deep.equal(['not_placed', '1'])
      }
    })

    it('when the command is faulty, the error states that it was not placed', async () => {
      exchange.engine.faults.push({ reply: { none: 'faulty' }, isExecuted: false })
      const answer = await exchange.place(alice)
      expect([...codeOf(answer), outcomeOf(answer)]).to.deep.equal([500, 'INTERNAL', 'not_placed'])
    })

    it('when an executed order had an unknown outcome, no later answer is not_placed', async () => {
      const { body } = signedBody(alice)
      exchange.engine.faults.push({ reply: UNKNOWN, isExecuted: true })
      const first = await post(alice, body)
      expect([...codeOf(first), outcomeOf(first)]).to.deep.equal([408, 'OUTCOME_UNKNOWN', 'unknown'])
      for (const none of ['overloaded', 'faulty'] as const) {
        exchange.engine.faults.push({ reply: { none }, isExecuted: false })
        expect(outcomeOf(await post(alice, body))).to.equal('placed')
      }
      expect((await post(alice, body)).body.is_duplicate).to.equal(true)
    })

    it('when an order with an unknown outcome is not stored yet, a later refusal is not not_placed', async () => {
      const { body } = signedBody(alice)
      exchange.engine.faults.push({ reply: UNKNOWN, isExecuted: false })
      expect(outcomeOf(await post(alice, body))).to.equal('unknown')
      exchange.engine.faults.push({ reply: OVERLOADED, isExecuted: false })
      expect(outcomeOf(await post(alice, body))).to.equal('unknown')
      expect((await post(alice, body)).body.is_duplicate).to.equal(false)
    })

    it('when an executed batch had an unknown outcome, no later answer is not_placed', async () => {
      const orders = bodies(alice, [{}])
      const id = newRequestId()
      exchange.engine.faults.push({ reply: UNKNOWN, isExecuted: true })
      expect(outcomeOf(await sendBatch(exchange, alice, orders, { id }))).to.equal('unknown')
      exchange.engine.faults.push({ reply: OVERLOADED, isExecuted: false })
      expect(outcomeOf(await sendBatch(exchange, alice, orders, { id }))).to.equal('placed')
      expect((await sendBatch(exchange, alice, orders, { id })).body.is_duplicate).to.equal(true)
    })

    it('when an executed cancel had an unknown outcome, no later answer is not_placed', async () => {
      const hash = await placed(alice)
      exchange.engine.faults.push({ reply: UNKNOWN, isExecuted: true })
      expect(outcomeOf(await exchange.cancel(alice, hash))).to.equal('unknown')
      exchange.engine.faults.push({ reply: OVERLOADED, isExecuted: false })
      expect(outcomeOf(await exchange.cancel(alice, hash))).to.equal('unknown')
    })
  })

  describe('switches and log-ins', () => {
    const calls = () =>
      createEngineCalls(
        exchange.engine,
        LOGGER,
        { commandTimeoutMs: 5_000 },
        { current: 0, traceId: undefined, span: undefined },
        null,
      )

    it('when the switch of an account is armed and disarmed, the table has it', async () => {
      const set = (timeout_seconds: number) =>
        exchange.send(alice, 'POST', '/v0/orders/cancel/all-after', { timeout_seconds })
      const armed = await set(60)
      expect(armed.body).to.include({ armed: true, timeout_seconds: 60, remaining_seconds: 60 })
      const shown = await exchange.get(alice, '/v0/orders/cancel/all-after')
      expect(shown.body.fire_at).to.equal(armed.body.fire_at)
      expect((await set(0)).body).to.include({ armed: false, fire_at: null })
      expect((await exchange.get(alice, '/v0/orders/cancel/all-after')).body.armed).to.equal(false)
      exchange.engine.faults.push({ reply: UNKNOWN, isExecuted: true })
      const unanswered = await set(60)
      expect([...codeOf(unanswered), outcomeOf(unanswered)]).to.deep.equal([
        503,
        'DATABASE_UNAVAILABLE',
        'unknown',
      ])
    })

    it('when a connection ends, its last renewal includes the time in which its client was asked to wait', async () => {
      const at = Date.now() as Millis
      const standing = { now: () => at }
      const switches = createConnectionSwitches(createEngineSwitches(calls(), standing), standing, LOGGER)
      const fireAt = (await switches.set('one', { userId: alice.userId, keyName: 'default' }, 10)) as number
      expect(fireAt).to.be.within(Date.now() + 5_000, Date.now() + 10_000)
      switches.end('one', 30_000)
      await switches.stop()
      const held = exchange.engine.arrived.filter(({ kind }) => kind === 'hold_connections')
      const [first, last] = [held[0], held.at(-1)].map(
        (one) => (one as unknown as { connections: unknown[] }).connections[0],
      )
      expect(first).to.deep.equal({
        connectionId: 'one',
        userId: alice.userId,
        timeoutSeconds: 10,
        keyName: 'default',
        fireInMs: 10_000,
      })
      expect((last as { fireInMs: number }).fireInMs).to.be.within(35_000, 40_000)
      const before = exchange.engine.arrived.length
      await switches.set('one', { userId: alice.userId, keyName: 'default' }, 0)
      expect(exchange.engine.arrived.slice(before)).to.deep.equal([
        { kind: 'end_connections', connections: ['one'] },
      ])
      await switches.stop()
    })

    it('when an address logs in for the first time, the engine creates its user once', async () => {
      const logIn = createLogIn(exchange.db, calls())
      const address = `0x${'1a'.repeat(20)}` as Address
      exchange.engine.faults.push({ reply: UNKNOWN, isExecuted: true })
      const error = await logIn(address).catch((caught: unknown) => caught)
      expect(error).to.include({ code: 'DATABASE_UNAVAILABLE', outcome: 'unknown' })
      const userId = await logIn(address)
      expect(userId).to.be.greaterThan(bob.userId)
      expect(await logIn(address)).to.equal(userId)
    })
  })

  describe('after the engine has released ended orders and requests', () => {
    it('when a cancelled order is repeated, the answer is the order as it ended', async () => {
      const { body, hash } = signedBody(alice)
      await post(alice, body)
      await exchange.cancel(alice, hash)
      await exchange.engine.release()
      const again = await post(alice, body)
      expect([again.status, again.body.is_duplicate]).to.deep.equal([200, true])
      expect(again.body.order).to.include({ order_hash: hash, status: 'CANCELLED' })
    })

    it('when another order has the salt of an ended one, it is refused', async () => {
      const { body, hash } = signedBody(alice, { salt: 900_001n })
      await post(alice, body)
      await exchange.cancel(alice, hash)
      await exchange.engine.release()
      const other = await post(alice, signedBody(alice, { salt: 900_001n, quantity: '2' }).body)
      expect([...codeOf(other), outcomeOf(other)]).to.deep.equal([409, 'SALT_USED', 'not_placed'])
      expect(other.body.details.order_hash).to.equal(hash)
    })

    it('when ended, foreign and unknown orders are cancelled, each has its own answer', async () => {
      const hash = await placed(alice)
      await exchange.cancel(alice, hash)
      await exchange.engine.release()
      expect((await exchange.cancel(alice, hash)).body).to.include({ cancelled: true, is_duplicate: true })
      expect(codeOf(await exchange.cancel(bob, hash))[1]).to.equal('NOT_YOURS')
      expect(codeOf(await exchange.cancel(bob, `0x${'0d'.repeat(32)}`))[1]).to.equal('ORDER_NOT_FOUND')
    })

    it('when the engine has the order of a cancel, the cancel is sent once and without a search', async () => {
      await exchange.engine.release()
      const hash = await placed(alice)
      const { arrived } = exchange.engine
      const before = arrived.length
      expect((await exchange.cancel(alice, hash)).body.order.status).to.equal('CANCELLED')
      const targets = arrived
        .slice(before)
        .map(
          (command) =>
            command.kind === 'orders' && command.items.map((item) => 'target' in item && item.target),
        )
      expect(targets).to.deep.equal([[{ hash, ended: null }]])
    })

    it('when an account counts its salts up, the tables are read once for each release', async () => {
      let reads = 0
      const counting: KyselyPlugin = {
        transformQuery({ node }) {
          reads++
          return node
        },
        transformResult: async ({ result }) => result,
      }
      const { db } = exchange
      const find = createFindReleased(db.withPlugin(counting), createFindBySalt(db))
      const { body, hash } = signedBody(bob, { salt: 700_010n })
      await post(bob, body)
      const found = async (salt: string, upTo: number) =>
        (await find({ marketId: 1, maker: bob.address, salt }, upTo as Seq))?.hash
      expect([await found('700011', 5), await found('700012', 5), reads]).to.deep.equal([
        undefined,
        undefined,
        1,
      ])
      expect([await found('700013', 6), reads]).to.deep.equal([undefined, 2])
      expect([await found('700010', 6), await found('700009', 6), reads]).to.deep.equal([hash, undefined, 2])
    })

    it('when a released batch is repeated, the answer is the first one', async () => {
      const orders = bodies(alice, [{}, { price: '1000000' }])
      const id = newRequestId()
      const first = await sendBatch(exchange, alice, orders, { id })
      await exchange.engine.release()
      const again = await sendBatch(exchange, alice, orders, { id })
      expect(again.body).to.deep.equal({ ...first.body, is_duplicate: true })
      const other = await sendBatch(exchange, alice, bodies(alice, [{}]), { id })
      expect(codeOf(other)).to.deep.equal([409, 'CLIENT_REQUEST_REUSED'])
    })

    it('when an atomic batch contains an order that has ended, the order keeps its place and all other orders are placed', async () => {
      const [ended, fresh] = [signedBody(alice), signedBody(alice)]
      await post(alice, ended.body)
      await exchange.cancel(alice, ended.hash)
      await exchange.engine.release()
      const id = newRequestId()
      const send = () => sendBatch(exchange, alice, [ended.body, fresh.body], { id, mode: 'atomic' })
      const first = await send()
      const statuses = ({ body }: Answer) =>
        body.results.map(({ order, is_duplicate }: Answer['body']) => [order.status, is_duplicate])
      expect(statuses(first)).to.deep.equal([
        ['CANCELLED', true],
        ['OPEN', false],
      ])
      expect((await send()).body).to.deep.equal({ ...first.body, is_duplicate: true })
    })

    it('when an api that knows of no release places an order and cancels all without waiting, the cancel finds the order', async () => {
      await exchange.engine.release()
      const second = await startSecondApi(exchange)
      const { arrived } = exchange.engine
      const before = arrived.length
      const letGo = exchange.engine.hold()
      const placing = second.place(bob)
      await until(async () => arrived.length === before + 1)
      const cancelling = second.send(bob, 'POST', '/v0/orders/cancel/all', {})
      letGo()
      const [place, cancel] = await Promise.all([placing, cancelling])
      expect(place.status, JSON.stringify(place.body)).to.equal(200)
      const hashes = cancel.body.results.map((result: { order_hash: string }) => result.order_hash)
      expect(hashes).to.include(place.body.order.order_hash)
      await second.stop()
    })

    it('when more is released while orders are placed and cancelled without waiting, every cancel finds its order', async () => {
      const pairs = Array.from({ length: 5 }, async () => {
        const { body, hash } = signedBody(alice)
        const placing = post(alice, body)
        const cancelling = exchange.cancel(alice, hash)
        const releasing = exchange.engine.release()
        await releasing
        return Promise.all([placing, cancelling])
      })
      for (const [place, cancel] of await Promise.all(pairs)) {
        expect([place.status, cancel.status], JSON.stringify([place.body, cancel.body])).to.deep.equal([
          200, 200,
        ])
        expect(cancel.body.order.status).to.equal('CANCELLED')
      }
      await expectConsistentAccounting(exchange.db)
    })
  })
})

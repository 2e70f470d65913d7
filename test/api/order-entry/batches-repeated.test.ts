import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { future, perpetual } from '../../support/markets.ts'
import { expectConsistentAccounting } from '../support/accounting.ts'
import {
  type Answer,
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  startSecondApi,
  type User,
} from '../support/exchange-fixture.ts'
import { type BatchOptions, bodies, newRequestId, sendBatch } from '../support/place-batch.ts'
import { until, untilLockWait } from '../support/wait.ts'

describe('a repeated batch of placements', () => {
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

  it('when orders and market have changed since, it returns the same answer', async () => {
    const ida = await createUser(exchange.db, 'ida')
    const orders = [
      ...bodies(ida, [{}, { market: future, price: '50' }]),
      { ...signedBody(ida).body, price: '98' },
    ]
    const first = await send(ida, orders, { id: 'again' })
    await exchange.cancel(ida, first.body.results[0].order.order_hash)
    await exchange.db.updateTable('markets').set({ mode: 'halted' }).execute()
    const traces = await exchange.state()
    const second = await send(ida, orders, { id: 'again' })
    await exchange.db.updateTable('markets').set({ mode: 'open' }).execute()
    expect(second.status).to.equal(200)
    expect(second.body).to.deep.equal({ ...first.body, is_duplicate: true })
    expect(await exchange.state()).to.deep.equal(traces)
  })

  it('when the fields come in another order, it is the same body; when the body differs, it is rejected', async () => {
    const orders = bodies(alice, [{}])
    const id = newRequestId()
    await send(alice, orders, { id })
    const shuffled = {
      orders: orders.map((order) => Object.fromEntries(Object.entries(order).reverse())),
      mode: 'best_effort',
      client_request_id: id,
    }
    expect(
      (await exchange.send(alice, 'POST', '/v0/orders/place/batch', shuffled)).body.is_duplicate,
    ).to.equal(true)
    for (const other of [
      send(alice, orders, { id, mode: 'atomic' }),
      send(alice, bodies(alice, [{}]), { id }),
    ]) {
      const { status, body } = await other
      expect([status, body.details.code, body.details.field]).to.deep.equal([
        409,
        'CLIENT_REQUEST_REUSED',
        'client_request_id',
      ])
    }
  })

  it('when it arrives many times at once at two processes, it is executed once', async () => {
    const jack = await createUser(exchange.db, 'jack')
    const secondApi = await startSecondApi(exchange)
    const orders = bodies(jack, [{}, { market: future, price: '50' }, { price: '98' }])
    const body = { client_request_id: 'twins', mode: 'atomic', orders }
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, at) =>
        (at % 2 ? exchange : secondApi).send(jack, 'POST', '/v0/orders/place/batch', body),
      ),
    )
    expect(answers.map(({ status }) => status)).to.deep.equal(Array(10).fill(200))
    expect(answers.filter(({ body: { is_duplicate } }) => !is_duplicate)).to.have.length(1)
    expect(new Set(answers.map(({ body: { results } }) => JSON.stringify(results))).size).to.equal(1)
    expect(
      await exchange.db.selectFrom('orders').selectAll().where('user_id', '=', jack.userId).execute(),
    ).to.have.length(3)
    await secondApi.stop()
  })

  for (const [what, allTerms] of [
    ['some of its orders', [{}, { leverage: 10 }]],
    ['all of its orders', [{ leverage: 10 }]],
  ] as const) {
    it(`when the first is still running and ${what} would be rejected by now, it returns the same answer`, async () => {
      const lena = await createUser(exchange.db, `lena ${allTerms.length}`)
      const sent = { client_request_id: newRequestId(), mode: 'best_effort', orders: bodies(lena, allTerms) }
      const send = (through: ExchangeFixture): Promise<Answer> =>
        through.send(lena, 'POST', '/v0/orders/place/batch', sent)
      let first: Promise<Answer> | undefined
      let second: Promise<Answer> | undefined
      let secondApi: ExchangeFixture | undefined
      const { spec } = await exchange.db
        .selectFrom('markets')
        .select('spec')
        .where('market_id', '=', perpetual.marketId)
        .executeTakeFirstOrThrow()
      const cap = (maxLeverage: number) =>
        exchange.db
          .updateTable('markets')
          .set({ spec: JSON.stringify({ ...spec, maxLeverage }) })
          .where('market_id', '=', perpetual.marketId)
          .execute()
      const never = new Error('rolled back')
      // This uncommitted row blocks the last write of the first copy: it has decided, and commits once the row is rolled back.
      const holding = exchange.db.transaction().execute(async (tx) => {
        const stored = { digest: Buffer.of(), answer: '{}', created_at: Date.now() }
        const row = { user_id: lena.userId, client_request_id: sent.client_request_id, ...stored }
        await tx.insertInto('client_requests').values(row).execute()
        first = send(exchange)
        await untilLockWait(exchange.db, 1)
        await cap(5)
        secondApi = await startSecondApi(exchange)
        const { arrived } = exchange.engine
        const before = arrived.length
        second = send(secondApi)
        await until(async () => arrived.length > before)
        throw never
      })
      await holding.catch((error) => expect(error).to.equal(never))
      await cap(perpetual.maxLeverage)
      const [one, two] = [await first, await second]
      await secondApi?.stop()
      expect([one?.status, one?.body.accepted]).to.deep.equal([200, allTerms.length])
      expect(two?.body).to.deep.equal({ ...one?.body, is_duplicate: true })
    })
  }

  it('when another account uses the same id, it is another command', async () => {
    const kate = await createUser(exchange.db, 'kate')
    await send(alice, bodies(alice, [{}]), { id: 'mine' })
    expect((await send(kate, bodies(kate, [{}]), { id: 'mine' })).body).to.include({
      is_duplicate: false,
      accepted: 1,
    })
  })
})

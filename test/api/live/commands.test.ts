import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { LiveClient, type LiveMessage } from '../../support/live-client.ts'
import { expectRefusedOutcome } from '../../support/refused-outcome.ts'
import { expectConsistentAccounting } from '../support/accounting.ts'
import {
  type Answer,
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { newRequestId } from '../support/place-batch.ts'

/** The part of an error that is the same over REST: all but the id of the request. */
function shared({ message, details }: { message: string; details: Record<string, unknown> }) {
  const { request_id: _, ...rest } = details
  return { message, ...rest }
}

describe('commands over a connection', function () {
  this.timeout(60_000)
  let exchange: ExchangeFixture
  let alice: User
  let bob: User
  let client: LiveClient
  let base: string
  const open: LiveClient[] = []

  before(async () => {
    exchange = await startExchange({ RATE_LIMIT_CANCELS: '1', RATE_LIMIT_WINDOW_SECONDS: '100' })
    alice = await createUser(exchange.db, 'alice')
    bob = await createUser(exchange.db, 'bob')
    await exchange.project()
    await exchange.api.app.listen({ port: 0, host: '127.0.0.1' })
    base = `http://127.0.0.1:${(exchange.api.app.server.address() as AddressInfo).port}`
    client = await connect(alice)
  })
  after(async () => {
    await expectConsistentAccounting(exchange.db)
    await exchange.stop()
  })
  afterEach(async () => {
    await Promise.all(open.splice(1).map((one) => one.close()))
    expect(client.violations).to.deep.equal([])
  })

  async function connect(user: User): Promise<LiveClient> {
    const opened = await LiveClient.open(base, { headers: { authorization: `Key ${user.apiKey}` } })
    open.push(opened)
    return opened
  }
  const rest = (path: string, body: unknown): Promise<Answer> => exchange.send(alice, 'POST', path, body)

  it('when an order is placed over both, it is one order with the same fields', async () => {
    const { body, hash } = signedBody(alice)
    const { type, data, read_after } = await client.call('place', { body })
    const answer = await rest('/v0/orders', body)
    expect(type).to.equal('result')
    expect(data).to.include({ is_duplicate: false })
    expect(answer.body).to.include({ is_duplicate: true })
    expect(data.order).to.deep.equal(answer.body.order)
    expect(Object.keys(data)).to.have.members(Object.keys(answer.body))
    expect(read_after).to.deep.equal(answer.body.read_after)
    expect(data.order.order_hash).to.equal(hash)
  })

  it('when an order is cancelled by its label over both, the second cancel returns the same order', async () => {
    const body = { ...signedBody(alice).body, client_order_id: 'bid-1' }
    const placed = await client.call('place', { body })
    expect(placed.data.order.client_order_id).to.equal('bid-1')
    const { type, data } = await client.call('cancel_by_client_id', { body: { client_order_id: 'bid-1' } })
    expect(type).to.equal('result')
    expect(data).to.include({ cancelled: true, is_duplicate: false })
    expect(data.order.order_id).to.equal(placed.data.order.order_id)
    const answer = await rest('/v0/orders/cancel/by-client-id/bid-1', {})
    expect(answer.body.order).to.deep.equal(data.order)
    expect(Object.keys(data)).to.have.members(Object.keys(answer.body))
  })

  it('when the bookmark of a placement is passed to a read, the read shows the order', async () => {
    const { data, read_after } = await client.call('place', { body: signedBody(alice).body })
    await exchange.project()
    const query = `read_after_shard_id=${read_after.shard_id}&read_after_shard_seq=${read_after.shard_seq}`
    const { body } = await exchange.get(alice, `/v0/orders/${data.order.order_id}?${query}`)
    expect(body.order_hash).to.equal(data.order.order_hash)
  })

  const wrong: readonly [what: string, op: string, path: string, body: () => Record<string, unknown>][] = [
    ['a tick', 'place', '/v0/orders', () => signedBody(alice, { price: '100.05' }).body],
    ['a signature', 'place', '/v0/orders', () => ({ ...signedBody(alice).body, quantity: '2' })],
    ['an unknown field', 'place', '/v0/orders', () => ({ ...signedBody(alice).body, usd_amount: 1 })],
    ['a missing field', 'place', '/v0/orders', () => ({ ...signedBody(alice).body, salt: undefined })],
    ['an unknown market', 'place', '/v0/orders', () => ({ ...signedBody(alice).body, market_id: 99 })],
    ['the order of another account', 'place', '/v0/orders', () => signedBody(bob).body],
    [
      'an empty batch',
      'place_batch',
      '/v0/orders/place/batch',
      () => ({ client_request_id: 'a', mode: 'atomic', orders: [] }),
    ],
    [
      'the former shape',
      'cancel_batch',
      '/v0/orders/cancel/batch',
      () => ({ order_hashes: [], cancelSignature: '0x' }),
    ],
    ['a long reason', 'cancel_all', '/v0/orders/cancel/all', () => ({ reason: 'x'.repeat(201) })],
    ['NUL in a reason', 'cancel_all', '/v0/orders/cancel/all', () => ({ reason: 'a\0b' })],
  ]
  for (const [what, op, path, bodyOf] of wrong)
    it(`when ${what} is wrong, ${op} has the error of REST`, async () => {
      const body = bodyOf()
      const { type, data } = await client.call(op, { body })
      const answer = await rest(path, body)
      expect(type).to.equal('error')
      expect(data.status).to.equal(answer.status)
      expect(shared(data)).to.deep.equal(shared(answer.body))
      expectRefusedOutcome(data.details)
    })

  it('when an order is cancelled, the result has its status, and a repeated cancel is a duplicate', async () => {
    const { body, hash } = signedBody(alice)
    await client.call('place', { body })
    const first = await client.call('cancel', { body: { order_hash: hash, reason: 'moved' } })
    expect(first.data).to.deep.include({ cancelled: true, is_duplicate: false, read_after: first.read_after })
    expect(first.data.order).to.include({ status: 'CANCELLED', cancel_reason: 'moved' })
    const again = await rest(`/v0/orders/cancel/by-hash/${hash}`, {})
    expect(again.body).to.include({ cancelled: true, is_duplicate: true })
    const unknown = await client.call('cancel', { body: { order_hash: `0x${'0'.repeat(64)}` } })
    expect(unknown.data.details).to.include({ code: 'ORDER_NOT_FOUND', field: 'order_hash' })
  })

  it('when a batch is repeated over the other, its answer is the same', async () => {
    const orders = [signedBody(alice).body, signedBody(alice, { price: '100.05' }).body]
    const body = { client_request_id: newRequestId(), mode: 'best_effort', orders }
    const { data, read_after } = await client.call('place_batch', { body })
    expect([data.accepted, data.refused]).to.deep.equal([1, 1])
    expect(read_after).to.deep.equal(data.read_after)
    const again = await rest('/v0/orders/place/batch', body)
    expect(again.body).to.deep.equal({ ...data, is_duplicate: true })
  })

  it('when orders are cancelled together, the results are those of REST', async () => {
    const placed = [signedBody(alice), signedBody(alice)]
    for (const { body } of placed) await client.call('place', { body })
    const orderHashes = placed.map(({ hash }) => hash)
    const batch = await client.call('cancel_batch', {
      body: { client_request_id: newRequestId(), orderHashes: orderHashes.slice(0, 1) },
    })
    expect(batch.data.results.map(({ cancelled }: { cancelled: boolean }) => cancelled)).to.deep.equal([true])
    const all = await client.call('cancel_all', { body: { market_id: 1 } })
    expect(all.data.results.map(({ order_hash }: { order_hash: string }) => order_hash)).to.include(
      orderHashes[1],
    )
    const { body } = await rest('/v0/orders/cancel/all', {})
    expect(body).to.include({ cancelled_count: 0, is_duplicate: true })
  })

  it('when placements are sent without waiting, each has its own answer', async () => {
    const sent = Array.from({ length: 20 }, () => signedBody(alice))
    const ids = sent.map(({ body }) => client.send('place', { body }))
    const hashes = await Promise.all(
      ids.map(async (id) => (await client.find((one: LiveMessage) => one.id === id)).data.order.order_hash),
    )
    expect(hashes).to.deep.equal(sent.map(({ hash }) => hash))
  })

  it('when a limit is used up over REST, it is used up over the connection, and the other way round', async () => {
    const greta = await createUser(exchange.db, 'greta')
    const own = await connect(greta)
    const used = await Promise.all(
      Array.from({ length: 60 }, () => exchange.send(greta, 'POST', '/v0/orders/cancel/all', {})),
    )
    expect(used.map(({ status }) => status)).to.deep.equal(Array(60).fill(200))
    // The connection itself has taken a part of the account's budget.
    const results = await Promise.all(Array.from({ length: 41 }, () => own.call('cancel_all', { body: {} })))
    const refused = results.filter(({ type }) => type === 'error')
    expect(refused.length).to.be.within(1, 4)
    const { data } = refused[0] as LiveMessage
    expect(data.details).to.include({ code: 'RATE_LIMITED', outcome: 'not_read' })
    expect(['cancels', 'cost']).to.include(data.details.scope)
    expect(data.retry_after).to.be.within(1, 100)
    expect((await exchange.send(greta, 'POST', '/v0/orders/cancel/all', {})).status).to.equal(429)
    const placement = await own.call('place', { body: signedBody(greta).body })
    expect(placement.data.details).to.include({ code: 'RATE_LIMITED', scope: 'cost', outcome: 'not_read' })
  })
})

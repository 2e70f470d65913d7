/** Replacements over a connection: the operation, the message of the account, and a replacement directly behind its placement. */
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { LiveClient } from '../../support/live-client.ts'
import {
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { newRequestId } from '../support/place-batch.ts'

const ROUNDS = 5

describe('replacements on the live feed', function () {
  this.timeout(60_000)
  let exchange: ExchangeFixture
  let alice: User
  let client: LiveClient

  before(async () => {
    exchange = await startExchange({ COMMAND_TIMEOUT_MS: '15000' })
    alice = await createUser(exchange.db, 'alice', '100000000')
    await exchange.api.app.listen({ port: 0, host: '127.0.0.1' })
    const base = `http://127.0.0.1:${(exchange.api.app.server.address() as AddressInfo).port}`
    client = await LiveClient.open(base, { headers: { authorization: `Key ${alice.apiKey}` } })
  })
  after(async () => {
    await client.close()
    await exchange.stop()
  })

  const live = async (): Promise<string[]> =>
    (await exchange.db.selectFrom('orders').select('hash').where('ended_at', 'is', null).execute()).map(
      ({ hash }) => hash,
    )
  const cancelAll = () => client.call('cancel_all', { body: {} })

  it('when an order is replaced, one message of the account has both orders', async () => {
    const old = await client.call('place', { body: signedBody(alice).body })
    await exchange.project()
    client.send('subscribe', { topics: ['user'] })
    await client.find(({ topic, type }) => topic === 'user' && type === 'snapshot')
    const body = {
      cancel: { order_hash: old.data.order.order_hash },
      order: signedBody(alice, { price: '99' }).body,
    }
    const result = await client.call('replace', { body })
    expect(result.type, JSON.stringify(result)).to.equal('result')
    expect(result).to.include.keys('read_after', 'data')
    await exchange.project()
    const message = await client.find(({ topic, type }) => topic === 'user' && type === 'update')
    const orders = message.data.orders.map(({ order_id, status, status_reason }: Record<string, string>) => [
      order_id,
      status,
      status_reason,
    ])
    expect(orders).to.have.deep.members([
      [old.data.order.order_id, 'CANCELLED', 'REPLACED'],
      [result.data.order.order_id, 'OPEN', null],
    ])
    await cancelAll()
  })

  it('when a chain of replacements follows a placement on one socket, the last order is live', async () => {
    const rounds = Array.from({ length: ROUNDS }, async () => {
      const orders = [100, 99, 98, 97].map((price) => signedBody(alice, { price: String(price) }))
      const placed = client.call('place', { body: orders[0]?.body })
      const replaced = orders
        .slice(1)
        .map((order, at) =>
          client.call('replace', { body: { cancel: { order_hash: orders[at]?.hash }, order: order.body } }),
        )
      expect((await placed).type).to.equal('result')
      for (const result of await Promise.all(replaced))
        expect(result.type, JSON.stringify(result.data)).to.equal('result')
      return orders.at(-1)?.hash as string
    })
    const last = await Promise.all(rounds)
    expect(await live()).to.have.members(last)
    await cancelAll()
  })

  it('when a replacement by label follows its placement, it finds the order; so does a batch', async () => {
    const label = newRequestId()
    const placed = client.call('place', { body: { ...signedBody(alice).body, client_order_id: label } })
    const order = signedBody(alice, { price: '99' })
    const replaced = client.call('replace', {
      body: { cancel: { client_order_id: label }, order: order.body },
    })
    const last = signedBody(alice, { price: '98' })
    const orders = [{ cancel: { client_order_id: label }, order: last.body }]
    const batch = client.call('replace_batch', {
      body: { client_request_id: newRequestId(), mode: 'atomic', orders },
    })
    expect((await placed).type).to.equal('result')
    expect((await replaced).type).to.equal('result')
    const result = await batch
    expect(result.type, JSON.stringify(result.data)).to.equal('result')
    expect(result.data.results[0].order).to.include({ order_hash: last.hash, client_order_id: label })
    expect(await live()).to.deep.equal([last.hash])
    await cancelAll()
  })

  it('when a cancel follows a replacement, the new order ends', async () => {
    const old = signedBody(alice)
    const next = signedBody(alice, { price: '99' })
    const placed = client.call('place', { body: old.body })
    const replaced = client.call('replace', { body: { cancel: { order_hash: old.hash }, order: next.body } })
    const cancelled = client.call('cancel', { body: { order_hash: next.hash } })
    for (const result of await Promise.all([placed, replaced, cancelled]))
      expect(result.type, JSON.stringify(result.data)).to.equal('result')
    expect(await live()).to.deep.equal([])
  })
})

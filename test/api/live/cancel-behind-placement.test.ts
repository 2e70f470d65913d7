/** A cancel that is sent directly after its placement finds the order. */
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { LiveClient } from '../../support/live-client.ts'
import { future } from '../../support/markets.ts'
import {
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  startSecondApi,
  type User,
} from '../support/exchange-fixture.ts'
import { newRequestId } from '../support/place-batch.ts'

const ROUNDS = 40

describe('a cancel directly behind its placement', function () {
  this.timeout(60_000)
  let exchange: ExchangeFixture
  let second: ExchangeFixture
  let alice: User
  let client: LiveClient

  before(async () => {
    exchange = await startExchange()
    second = await startSecondApi(exchange)
    alice = await createUser(exchange.db, 'alice', '100000000')
    await exchange.api.app.listen({ port: 0, host: '127.0.0.1' })
    const base = `http://127.0.0.1:${(exchange.api.app.server.address() as AddressInfo).port}`
    client = await LiveClient.open(base, { headers: { authorization: `Key ${alice.apiKey}` } })
  })
  after(async () => {
    await client.close()
    await second.stop()
    await exchange.stop()
  })

  const live = async (): Promise<string[]> =>
    (await exchange.db.selectFrom('orders').select('hash').where('ended_at', 'is', null).execute()).map(
      ({ hash }) => hash,
    )
  const expectNoneLive = async (): Promise<void> => {
    expect(await live()).to.deep.equal([])
  }

  it('when both are sent on one socket, every order ends cancelled', async () => {
    const rounds = Array.from({ length: ROUNDS }, async () => {
      const { body, hash } = signedBody(alice)
      const placed = client.call('place', { body })
      const cancelled = await client.call('cancel', { body: { order_hash: hash } })
      expect((await placed).type).to.equal('result')
      expect(cancelled.type, JSON.stringify(cancelled.data)).to.equal('result')
    })
    await Promise.all(rounds)
    await expectNoneLive()
  })

  it('when a batch over two markets is followed by cancels of its orders on one socket, every order ends cancelled', async () => {
    const orders = [signedBody(alice), signedBody(alice, { market: future, price: '50' })]
    const placed = client.call('place_batch', {
      body: { client_request_id: newRequestId(), mode: 'atomic', orders: orders.map(({ body }) => body) },
    })
    const single = client.call('cancel', { body: { order_hash: orders[0]?.hash } })
    const many = client.call('cancel_batch', {
      body: { client_request_id: newRequestId(), orderHashes: orders.map(({ hash }) => hash) },
    })
    expect((await placed).type).to.equal('result')
    expect((await single).type).to.equal('result')
    for (const result of (await many).data.results) expect(result).to.include({ cancelled: true })
    await expectNoneLive()
  })

  it('when a cancel by label or of all orders follows on one socket, the order ends cancelled', async () => {
    for (const cancel of [
      (id: string) => client.call('cancel_by_client_id', { body: { client_order_id: id } }),
      () => client.call('cancel_all', { body: {} }),
      () => client.call('cancel_all', { body: { market_id: 1 } }),
    ]) {
      const id = newRequestId()
      const placed = client.call('place', { body: { ...signedBody(alice).body, client_order_id: id } })
      expect((await cancel(id)).type).to.equal('result')
      expect((await placed).type).to.equal('result')
      await expectNoneLive()
    }
  })

  /** The cancel is sent while the placement is on its way. */
  async function cancelBehind(api: ExchangeFixture): Promise<void> {
    const { body, hash } = signedBody(alice)
    const placed = exchange.send(alice, 'POST', '/v0/orders', body)
    const cancelled = await api.cancel(alice, hash)
    expect((await placed).status).to.equal(200)
    expect(cancelled.status, JSON.stringify(cancelled.body)).to.equal(200)
  }

  it('when they are sent over REST to the same api, every order ends cancelled', async () => {
    await Promise.all(Array.from({ length: ROUNDS }, () => cancelBehind(exchange)))
    await expectNoneLive()
  })

  it('when they are sent over REST to a second api, every order ends cancelled', async () => {
    // One at a time: the second api waits for another's placement half a second at most.
    for (let round = 0; round < ROUNDS / 4; round++) await cancelBehind(second)
    await expectNoneLive()
  })
})

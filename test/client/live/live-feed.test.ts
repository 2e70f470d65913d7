/** The live feed of the client, against an exchange. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { WebSocketServer } from 'ws'
import { Client } from '../../../client/client.ts'
import type { LocalAccount } from '../../../client/live/local-account.ts'
import type { LocalBook } from '../../../client/live/local-book.ts'
import { createUser, type ExchangeFixture, startExchange } from '../../api/support/exchange-fixture.ts'
import { waitFor } from '../../support/patience.ts'

describe('client/live, against an exchange that fails', () => {
  it('when a subscription fails with an internal error, it is sent again', async () => {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    const sent: string[] = []
    server.on('connection', (socket) =>
      socket.on('message', (data) => {
        const { id, topics } = JSON.parse(String(data))
        sent.push(...topics)
        const failure = { status: 500, message: 'failed', details: { code: 'INTERNAL', retryable: false } }
        if (sent.length === 1)
          socket.send(JSON.stringify({ type: 'error', id, topic: topics[0], data: failure }))
        else {
          const answer = { id, topic: topics[0], seq: 3, data: { epoch: 1, resumed: false } }
          socket.send(JSON.stringify({ type: 'subscribed', ...answer }))
          const levels = { long_levels: [], short_levels: [] }
          socket.send(JSON.stringify({ type: 'snapshot', ...answer, prev_seq: 0, epoch: 1, data: levels }))
        }
      }),
    )
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const errors: unknown[] = []
    const onLiveError = (error: unknown) => errors.push(error)
    const client = new Client({ baseUrl: `http://127.0.0.1:${port}`, onLiveError })
    try {
      const book = client.live.book(1)
      await waitFor(
        async () => book.seq,
        (seq) => seq === 3,
      )
      expect(sent).to.have.length(2)
      expect(errors).to.deep.equal([])
    } finally {
      client.close()
      server.close()
    }
  })
})

describe('client/live, against an exchange', function () {
  this.timeout(60_000)
  let exchange: ExchangeFixture
  let client: Client
  let book: LocalBook
  let account: LocalAccount

  before(async () => {
    exchange = await startExchange()
    const alice = await createUser(exchange.db, 'alice')
    await exchange.project()
    const baseUrl = await exchange.api.app.listen({ port: 0, host: '127.0.0.1' })
    client = new Client({ baseUrl, apiKey: alice.apiKey, privateKey: alice.wallet.privateKey })
    book = client.live.book(1)
    account = client.live.account()
    await current()
  })
  after(async () => {
    client.close()
    await exchange.stop()
  })

  const current = () =>
    waitFor(
      async () => client.live.isCurrent,
      (isCurrent) => isCurrent,
      { everyMs: 10 },
    )
  const buy = { marketId: 1, side: 'LONG', price: '100', quantity: '1' } as const
  const restBook = async () => (await client.marketData.orderbook(1)).long_levels
  const equalsRest = () =>
    waitFor(
      async () => JSON.stringify(book.levels('LONG')) === JSON.stringify(await restBook()),
      (isEqual) => isEqual,
    )

  it('when an order is placed over the connection, the account shows it before the feed does', async () => {
    const { order } = await client.live.orders.send(await client.orders.sign(buy))
    expect(account.orders.map(({ order_id }) => order_id)).to.deep.equal([order.order_id])
    expect(account.writes).to.have.length(1)
    await exchange.project()
    await waitFor(
      async () => account.writes.length,
      (count) => count === 0,
    )
    expect(account.orders.map(({ order_id }) => order_id)).to.deep.equal([order.order_id])
    await equalsRest()
  })

  it('when the connection is lost while orders change, book and account continue after it and equal REST', async () => {
    client.live.interrupt()
    const { order } = await client.orders.place({ ...buy, price: '99' })
    await exchange.project()
    await current()
    await equalsRest()
    await waitFor(
      async () => account.orders.length,
      (count) => count === 2,
    )
    await client.live.orders.cancel(order.order_hash)
    expect(account.orders).to.have.length(1)
    await exchange.project()
    await equalsRest()
  })
})

/** The live feed of the client, against an exchange. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { Client } from '../../../client/client.ts'
import type { LocalAccount } from '../../../client/live/local-account.ts'
import type { LocalBook } from '../../../client/live/local-book.ts'
import { waitFor } from '../../../client/wait-for.ts'
import { createUser, type ExchangeFixture, startExchange } from '../../api/support/exchange-fixture.ts'

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

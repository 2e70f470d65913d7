/** Topics over a real socket, from a placement to its message. */
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { LiveClient } from '../../support/live-client.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'

const MARKET_TOPICS = ['book', 'trades', 'auction', 'stats', 'candles.1m', 'candles.1w']

describe('the topics of the live feed', function () {
  this.timeout(60_000)
  let exchange: ExchangeFixture
  let alice: User
  let bob: User
  let base: string
  const open: LiveClient[] = []

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    bob = await createUser(exchange.db, 'bob')
    await exchange.project()
    await exchange.api.app.listen({ port: 0, host: '127.0.0.1' })
    base = `http://127.0.0.1:${(exchange.api.app.server.address() as AddressInfo).port}`
  })
  after(() => exchange.stop())
  afterEach(async () => {
    await Promise.all(open.splice(0).map((client) => client.close()))
  })

  const connect = async (user?: User): Promise<LiveClient> => {
    const headers = user === undefined ? {} : { authorization: `Key ${user.apiKey}` }
    const client = await LiveClient.open(base, { headers })
    open.push(client)
    return client
  }
  const place = async (user: User) => {
    const { body } = await exchange.place(user)
    await exchange.project()
    return body
  }

  it('when a client subscribes to every topic, each starts with a snapshot', async () => {
    const client = await connect(alice)
    const topics = [...MARKET_TOPICS.map((topic) => `market.1.${topic}`), 'markets', 'user', 'system']
    client.send('subscribe', { topics })
    for (const topic of topics) {
      await client.find((message) => message.type === 'subscribed' && message.topic === topic)
      const { data } = await client.find((message) => message.type === 'snapshot' && message.topic === topic)
      expect(data).to.be.an('object')
    }
  })

  it('when a market does not exist, or the account is not known, the topic is refused', async () => {
    const client = await connect()
    client.send('subscribe', { topics: ['market.999.book', 'user', 'market.1.books'] })
    for (const [topic, code] of [
      ['market.999.book', 'MARKET_NOT_FOUND'],
      ['user', 'CREDENTIAL_MISSING'],
      ['market.1.books', 'TOPIC_NOT_FOUND'],
    ]) {
      const { data } = await client.find((message) => message.type === 'error' && message.topic === topic)
      expect(data.details.code).to.equal(code)
    }
  })

  it('when an order is placed, its account and the book hear of it, and its account alone gets the bookmark', async () => {
    const [own, other] = [await connect(alice), await connect(bob)]
    for (const client of [own, other]) {
      client.send('subscribe', { topics: ['user', 'market.1.book'] })
      await client.find((message) => message.type === 'snapshot' && message.topic === 'user')
      await client.find((message) => message.type === 'snapshot' && message.topic === 'market.1.book')
    }
    const placed = await place(alice)
    const mine = await own.find((message) => message.type === 'update' && message.topic === 'user')
    expect(mine.data.orders.map(({ order_id }: { order_id: string }) => order_id)).to.deep.equal([
      placed.order.order_id,
    ])
    expect(mine.read_after).to.deep.equal(placed.read_after)
    expect(mine.data.balance.reserved).to.be.greaterThan(0)
    const book = await other.find((message) => message.type === 'update' && message.topic === 'market.1.book')
    expect(book).not.to.have.property('read_after')
    expect([...book.data.long_levels, ...book.data.short_levels]).to.have.length(1)
    expect(other.messages.filter(({ type, topic }) => type === 'update' && topic === 'user')).to.deep.equal(
      [],
    )
  })

  it('when a client resumes after its position, it gets what it missed, without a snapshot', async () => {
    const first = await connect(alice)
    const { data, seq } = await first.call('subscribe', { topics: ['user'] })
    await first.close()
    const placed = await place(alice)
    const second = await connect(alice)
    const resumed = await second.call('subscribe', {
      topics: ['user'],
      since: { user: `${data.epoch}:${seq}` },
    })
    expect(resumed.data.resumed).to.equal(true)
    const update = await second.find(({ type }) => type === 'update')
    expect(update.prev_seq).to.equal(seq)
    expect(update.data.orders[0].order_id).to.equal(placed.order.order_id)
    expect(second.messages.filter(({ type }) => type === 'snapshot')).to.deep.equal([])
  })

  it('when the position is of another epoch, or ahead of the feed, the client gets a snapshot', async () => {
    for (const since of ['1:5', '99999999999999:1']) {
      const client = await connect(alice)
      const { data } = await client.call('subscribe', { topics: ['user'], since: { user: since } })
      expect(data.resumed).to.equal(false)
      await client.find(({ type }) => type === 'snapshot')
    }
  })
})

import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { LiveClient, type LiveMessage } from '../../support/live-client.ts'
import {
  type Answer,
  createUser,
  type ExchangeFixture,
  type OrderTerms,
  signedBody,
  startExchange,
  startSecondApi,
  type User,
} from '../support/exchange-fixture.ts'
import { append, clearedRow, type Trade } from '../support/trade-rows.ts'
import { until } from '../support/wait.ts'

const BOOK = 'market.1.book'
const TOPICS = [BOOK, 'market.1.trades', 'market.1.auction', 'markets', 'user']
const SUMMARIES = ['market.1.stats', 'market.1.candles.1m', 'market.1.candles.1w', 'system']

describe('the topics of the live feed on a socket', function () {
  this.timeout(60_000)
  const env = { LIVE_HEARTBEAT_MS: '300' }
  let exchange: ExchangeFixture
  let second: ExchangeFixture
  let alice: User
  let bob: User
  const bases = { first: '', second: '' }
  const open: LiveClient[] = []

  const listen = async ({ api }: ExchangeFixture): Promise<string> => {
    await api.app.listen({ port: 0, host: '127.0.0.1' })
    return `http://127.0.0.1:${(api.app.server.address() as AddressInfo).port}`
  }
  before(async () => {
    exchange = await startExchange(env)
    second = await startSecondApi(exchange, env)
    alice = await createUser(exchange.db, 'alice')
    bob = await createUser(exchange.db, 'bob')
    await exchange.project()
    Object.assign(bases, { first: await listen(exchange), second: await listen(second) })
  })
  after(async () => {
    await second.stop()
    await exchange.stop()
  })
  afterEach(() => Promise.all(open.splice(0).map((client) => client.close())))

  const connect = async (user: User | null, to: keyof typeof bases = 'first'): Promise<LiveClient> => {
    const headers: Record<string, string> = user === null ? {} : { authorization: `Key ${user.apiKey}` }
    const client = await LiveClient.open(bases[to], { headers })
    open.push(client)
    return client
  }
  const isOf = (topic: string, type: string) => (one: LiveMessage) => one.topic === topic && one.type === type
  const follow = async (client: LiveClient, topics: readonly string[], since = {}): Promise<void> => {
    client.send('subscribe', { topics, since })
    for (const topic of topics) await client.find(isOf(topic, 'subscribed'))
  }
  const placed = async (user: User, terms: OrderTerms): Promise<Answer['body']> => {
    const { body } = await exchange.place(user, terms)
    await exchange.project()
    return body
  }
  const lastOf = ({ messages }: LiveClient, topic: string): LiveMessage =>
    messages.findLast((one) => one.topic === topic && one.type !== 'subscribed')

  it('when a client subscribes, each topic starts with `subscribed` and a snapshot that equals REST', async () => {
    await placed(alice, { price: '99' })
    const client = await connect(alice)
    const topics = [...TOPICS, ...SUMMARIES]
    await follow(client, topics)
    for (const topic of topics) {
      const [started, snapshot] = client.messages.filter((one) => one.topic === topic)
      expect(started).to.deep.include({ type: 'subscribed', id: 'op-1', seq: snapshot.seq })
      expect(started.data).to.deep.equal({ epoch: snapshot.epoch, resumed: false })
      expect(snapshot).to.deep.include({ type: 'snapshot', prev_seq: 0 })
    }
    const { body } = await exchange.get(null, '/v0/orderbook/by-market/1')
    const { data } = lastOf(client, BOOK)
    expect([data.long_levels, data.short_levels]).to.deep.equal([body.long_levels, body.short_levels])
    const { body: mine } = await exchange.get(alice, `/v0/orders/by-user/${alice.userId}`)
    expect(lastOf(client, 'user').data.orders.map((order: LiveMessage) => order.order_id)).to.deep.equal(
      mine.orders.map((order: LiveMessage) => order.order_id),
    )
  })

  it('when an order is placed, book and user change, and the bookmark of the change is readable at once', async () => {
    const client = await connect(bob)
    await follow(client, [BOOK, 'user'])
    const { data } = await client.call('place', {
      body: signedBody(bob, { price: '98' }).body,
    })
    await exchange.project()
    const change = await client.find(isOf('user', 'update'))
    expect(change.data.orders[0].order_id).to.equal(data.order.order_id)
    const { shard_id, shard_seq } = change.read_after
    const query = `read_after_shard_id=${shard_id}&read_after_shard_seq=${shard_seq}`
    const { status, body } = await exchange.get(bob, `/v0/orders/${data.order.order_id}?${query}`)
    expect([status, body.status]).to.deep.equal([200, 'OPEN'])
    const level = await client.find(isOf(BOOK, 'update'))
    expect(level.data.long_levels.map(({ price }: LiveMessage) => price)).to.include(98)
  })

  it('when a batch clears, the messages of its topics have its id and arrive together', async () => {
    const buy = await placed(alice, { price: '100' })
    const sell = await placed(bob, { price: '100', side: 'SHORT' })
    const client = await connect(alice)
    await follow(client, [...TOPICS, 'market.1.stats', 'market.1.candles.1m'])
    const trade: Trade = {
      ...{ batch: 1, price: 1000, steps: 1000 },
      buy: { orderId: buy.order.order_id, user: alice, status: 'FILLED' },
      sell: { orderId: sell.order.order_id, user: bob, status: 'FILLED' },
    }
    await append(exchange, clearedRow(trade))
    await exchange.project()
    await client.find(isOf('market.1.auction', 'update'))
    const first = client.messages.findIndex(({ batch_id }) => batch_id === 1)
    const together = client.messages.slice(first).filter(({ type }) => type === 'update')
    const named = together.filter(({ batch_id }) => batch_id === 1).map(({ topic }) => topic)
    expect(named).to.include.members([BOOK, 'market.1.trades', 'market.1.auction', 'user'])
    const atOnce = named.filter((topic) => topic !== 'markets' && !/stats|candles/.test(topic))
    const found = together.filter(({ topic }) => atOnce.includes(topic))
    expect(found.slice(0, atOnce.length).map(({ batch_id }) => batch_id)).to.deep.equal(atOnce.map(() => 1))
    for (const topic of ['market.1.stats', 'market.1.candles.1m', 'markets']) {
      const message = await client.find((one) => isOf(topic, 'update')(one) && one.batch_id === 1)
      expect(message.batch_id, topic).to.equal(1)
    }
    const { body } = await exchange.get(null, '/v0/markets/1')
    const { data } = lastOf(client, 'markets')
    const [market] = data.markets.filter((each: LiveMessage) => each.market_id === 1)
    expect(market).to.include({
      last_price: 100,
      last_price_e18_raw: body.last_price_e18_raw,
      last_batch_id: 1,
    })
  })

  it('when a client resumes at another process, it gets what followed and no snapshot', async () => {
    const client = await connect(alice)
    await follow(client, ['user', BOOK])
    await placed(alice, { price: '97' })
    await client.find(isOf('user', 'update'))
    const { seq, epoch } = {
      ...lastOf(client, 'user'),
      epoch: client.messages.find(isOf('user', 'snapshot'))?.epoch,
    }
    await client.close()
    open.splice(open.indexOf(client), 1)
    const missed = await placed(alice, { price: '96' })
    const again = await connect(alice, 'second')
    await follow(again, ['user'], { user: `${epoch}:${seq}` })
    const [started, next] = again.messages.filter(({ topic }) => topic === 'user')
    expect(started.data).to.deep.equal({ epoch, resumed: true })
    expect(next).to.deep.include({ type: 'update', prev_seq: seq })
    expect(next.data.orders[0].order_id).to.equal(missed.order.order_id)
  })

  it('when a heartbeat arrives, it has the seq of the last message of each topic', async () => {
    const client = await connect(alice)
    await follow(client, [BOOK, 'user'])
    await placed(alice, { price: '95' })
    await until(async () => {
      const beat = client.messages.findLast(({ type }) => type === 'heartbeat')
      const heads = { [BOOK]: lastOf(client, BOOK).seq, user: lastOf(client, 'user').seq }
      return JSON.stringify(beat?.data.topics) === JSON.stringify(heads)
    })
    const beat = client.messages.findLast(({ type }) => type === 'heartbeat')
    expect(beat.data.topics).to.deep.equal({
      [BOOK]: lastOf(client, BOOK).seq,
      user: lastOf(client, 'user').seq,
    })
  })

  it('when a topic is unsubscribed, its messages end and those of others go on', async () => {
    const client = await connect(alice)
    await follow(client, [BOOK, 'user'])
    const { data } = await client.call('unsubscribe', { topics: [BOOK] })
    expect(data).to.deep.equal({ topics: [BOOK] })
    await placed(alice, { price: '94' })
    await client.find(isOf('user', 'update'))
    expect(client.messages.filter(isOf(BOOK, 'update'))).to.deep.equal([])
  })

  it('when a topic cannot be subscribed, all other topics are, and the error names it', async () => {
    const client = await connect(null)
    await follow(client, [BOOK])
    client.send('subscribe', { topics: ['user', 'market.99.book', 'market.1.trades'] })
    await client.find(isOf('market.1.trades', 'subscribed'))
    const codeOf = (topic: string) =>
      client.messages.find((one) => one.type === 'error' && one.topic === topic)?.data.details.code
    expect([codeOf('user'), codeOf('market.99.book')]).to.deep.equal([
      'CREDENTIAL_MISSING',
      'MARKET_NOT_FOUND',
    ])
  })

  it('when a position is malformed, it is rejected by name', async () => {
    const client = await connect(null)
    const { data } = await client.call('subscribe', { topics: [BOOK], since: { [BOOK]: 'x' } })
    expect(data.details).to.include({ code: 'INVALID_FIELD' })
    expect(String(data.details.field)).to.match(/^since/)
  })
})

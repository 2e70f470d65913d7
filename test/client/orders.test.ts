import { expect } from 'chai'
import { id, Wallet } from 'ethers'
import { after, before, describe, it } from 'mocha'
import { Client } from '../../client/client.ts'
import { ClearbatchError } from '../../client/errors.ts'
import {
  createUser,
  type ExchangeFixture,
  startExchange,
  type User,
} from '../api/support/exchange-fixture.ts'

describe('client/orders, against an exchange', () => {
  let exchange: ExchangeFixture
  let alice: User
  let client: Client
  let baseUrl: string
  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    baseUrl = await exchange.api.app.listen({ port: 0, host: '127.0.0.1' })
    client = new Client({ baseUrl, apiKey: alice.apiKey, privateKey: alice.wallet.privateKey })
  })
  after(() => exchange.stop())

  const buy = { marketId: 1, side: 'LONG', price: '100', quantity: '1' } as const
  const failure = async (work: Promise<unknown>): Promise<ClearbatchError> =>
    work.then(
      () => expect.fail('the request succeeded'),
      (error: unknown) => {
        expect(error).to.be.instanceOf(ClearbatchError)
        return error as ClearbatchError
      },
    )

  it('when conditional orders of every type are placed, each waits for its trigger', async () => {
    const orders = [
      { ...buy, type: 'STOP_LIMIT', trigger: '110', price: '111' },
      { marketId: 1, side: 'LONG', type: 'STOP_MARKET', trigger: '110', quantity: '1' },
      { marketId: 1, side: 'SHORT', type: 'TAKE_PROFIT_LIMIT', trigger: '120', price: '119', quantity: '1' },
      { marketId: 1, side: 'SHORT', type: 'TAKE_PROFIT_MARKET', trigger: '120', quantity: '1' },
      { marketId: 1, side: 'SHORT', type: 'STOP_LOSS_LIMIT', trigger: '90', price: '89', quantity: '1' },
      { marketId: 1, side: 'SHORT', type: 'STOP_LOSS_MARKET', trigger: '90', quantity: '1' },
    ] as const
    for (const terms of orders) {
      const { order } = await client.orders.place(terms)
      expect(order).to.include({ status: 'PENDING_TRIGGER', order_type: terms.type })
      const isStop = terms.type === 'STOP_LIMIT' || terms.type === 'STOP_MARKET'
      expect(order.reduce_only).to.equal(!isStop)
      expect(order.trigger_price).to.equal(Number(terms.trigger))
    }
  })

  it('when a signed order passes the dry run, sending it places it with the same hash', async () => {
    const signed = await client.orders.sign(buy)
    const validation = await client.orders.validate(signed)
    expect(validation).to.include({
      order_hash: signed.hash,
      signer: alice.address,
      status: 'OPEN',
      reserved_margin: 100.05,
    })
    const { order } = await client.orders.send(signed)
    expect(order.order_hash).to.equal(signed.hash)
    const error = await failure(client.orders.validate(await client.orders.sign({ ...buy, price: '106' })))
    expect([error.code, error.details.nearest_valid]).to.deep.equal(['PRICE_BAND', '105'])
  })

  it('when the response to a placement is lost, the retry returns the same order and places no second one', async () => {
    let requests = 0
    const loseFirst: typeof fetch = async (...request) => {
      const response = await fetch(...request)
      if (String(request[0]).endsWith('/v0/orders') && requests++ === 0)
        throw new TypeError('connection reset')
      return response
    }
    const { apiKey, wallet } = alice
    const http = { fetch: loseFirst }
    const unlucky = new Client({ baseUrl, apiKey, privateKey: wallet.privateKey, http })
    const { order, is_duplicate } = await unlucky.orders.place(buy)
    expect([requests, is_duplicate]).to.deep.equal([2, true])
    const rows = await exchange.db
      .selectFrom('orders')
      .select('hash')
      .where('hash', '=', order.order_hash)
      .execute()
    expect(rows).to.have.length(1)
  })

  it('when a batch of placements or cancels is sent again, it returns the first response', async () => {
    const orders = [
      await client.orders.sign(buy),
      await client.orders.sign({ ...buy, marketId: 2, price: '50' }),
    ]
    const clientRequestId = 'own id'
    const placed = await client.orders.placeBatch([...orders, { ...buy, price: '106' }], {
      clientRequestId: 'mixed',
    })
    expect([placed.accepted, placed.refused]).to.deep.equal([2, 1])
    const [first, , last] = placed.results
    expect(first).to.have.property('order')
    expect(last && 'error' in last && last.error.details.code).to.equal('PRICE_BAND')

    const atomic = await client.orders.placeBatch(orders, { mode: 'atomic', clientRequestId })
    expect(atomic.results.map((result) => 'order' in result && result.is_duplicate)).to.deep.equal([
      true,
      true,
    ])
    expect(
      (await client.orders.placeBatch(orders, { mode: 'atomic', clientRequestId })).is_duplicate,
    ).to.equal(true)
    const error = await failure(client.orders.placeBatch([buy, { ...buy, price: '106' }], { mode: 'atomic' }))
    expect([error.code, error.details.index]).to.deep.equal(['PRICE_BAND', 1])

    const hashes = orders.map(({ hash }) => hash)
    const cancelled = await client.orders.cancelBatch(hashes, {
      reason: 'done',
      clientRequestId: 'cancel them',
    })
    expect(cancelled.results.map((result) => 'order' in result && result.order.status)).to.deep.equal([
      'CANCELLED',
      'CANCELLED',
    ])
    expect(
      (await client.orders.cancelBatch(hashes, { reason: 'done', clientRequestId: 'cancel them' }))
        .is_duplicate,
    ).to.equal(true)
  })

  it('when orders are live, cancelAll cancels them, and cancelAllAfter arms and disarms the switch', async () => {
    const swept = await client.orders.cancelAll({ reason: 'night' })
    expect(swept.cancelled_count).to.be.greaterThan(0)
    expect(await client.orders.cancelAll({ marketId: 1 })).to.include({
      cancelled_count: 0,
      is_duplicate: true,
    })
    expect(await client.orders.cancelAllAfter(30)).to.include({ armed: true, remaining_seconds: 30 })
    expect((await client.orders.cancelSwitch()).armed).to.equal(true)
    expect(await client.orders.cancelAllAfter(0)).to.include({ armed: false, fire_at: null })
  })

  it('when the client has a session key, it signs orders of the account with it', async () => {
    const key = new Wallet(id('session'))
    const values = { permissions: 1, registered_at: 0, expires_at: 4_000_000_000, revoked_at: null, block: 1 }
    await exchange.db
      .insertInto('session_keys')
      .values({ owner: alice.address, key: key.address.toLowerCase(), ...values })
      .execute()
    const { apiKey, wallet } = alice
    const delegated = new Client({ baseUrl, apiKey, privateKey: wallet.privateKey, orderSigner: key })
    const { order } = await delegated.orders.place(buy)
    expect(order).to.include({ maker: alice.address, signer: key.address.toLowerCase() })
  })
})

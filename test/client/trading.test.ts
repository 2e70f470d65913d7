import { expect } from 'chai'
import { id, Wallet } from 'ethers'
import { after, before, describe, it } from 'mocha'
import { Client } from '../../client/client.ts'
import { ClearbatchError } from '../../client/errors.ts'
import { createUser, startWorld, type User, type World } from '../api/support/world.ts'

describe('client/trading, with an exchange', () => {
  let world: World
  let alice: User
  let client: Client
  let baseUrl: string
  before(async () => {
    world = await startWorld()
    alice = await createUser(world.db, 'alice')
    baseUrl = await world.api.app.listen({ port: 0, host: '127.0.0.1' })
    client = new Client({ baseUrl, apiKey: alice.apiKey, privateKey: alice.wallet.privateKey })
  })
  after(() => world.stop())

  const buy = { marketId: 1, side: 'LONG', price: '100', quantity: '1' } as const
  const failure = async (work: Promise<unknown>): Promise<ClearbatchError> =>
    work.then(
      () => expect.fail('it was taken'),
      (error: unknown) => {
        expect(error).to.be.instanceOf(ClearbatchError)
        return error as ClearbatchError
      },
    )

  it('places conditional orders of every type', async () => {
    const drafts = [
      { ...buy, type: 'STOP_LIMIT', trigger: '110', price: '111' },
      { marketId: 1, side: 'LONG', type: 'STOP_MARKET', trigger: '110', quantity: '1' },
      { marketId: 1, side: 'SHORT', type: 'TAKE_PROFIT_LIMIT', trigger: '120', price: '119', quantity: '1' },
      { marketId: 1, side: 'SHORT', type: 'TAKE_PROFIT_MARKET', trigger: '120', quantity: '1' },
      { marketId: 1, side: 'SHORT', type: 'STOP_LOSS_LIMIT', trigger: '90', price: '89', quantity: '1' },
      { marketId: 1, side: 'SHORT', type: 'STOP_LOSS_MARKET', trigger: '90', quantity: '1' },
    ] as const
    for (const draft of drafts) {
      const { order } = await client.place(draft)
      expect(order).to.include({ status: 'PENDING_TRIGGER', order_type: draft.type })
      const isStop = draft.type === 'STOP_LIMIT' || draft.type === 'STOP_MARKET'
      expect(order.reduce_only).to.equal(!isStop)
      expect(order.trigger_price).to.equal(Number(draft.trigger))
    }
  })

  it('tries an order, then sends the very same', async () => {
    const signed = await client.sign(buy)
    const tried = await client.validate(signed)
    expect(tried).to.include({
      order_hash: signed.hash,
      signer: alice.address,
      status: 'OPEN',
      reserved_margin: 100.05,
    })
    const { order } = await client.send(signed)
    expect(order.order_hash).to.equal(signed.hash)
    const error = await failure(client.validate(await client.sign({ ...buy, price: '106' })))
    expect([error.code, error.details.nearest_valid]).to.deep.equal(['PRICE_BAND', '105'])
  })

  it('places and cancels in batches, and gets the same answers again', async () => {
    const orders = [await client.sign(buy), await client.sign({ ...buy, marketId: 2, price: '50' })]
    const clientRequestId = 'of my own'
    const placed = await client.placeBatch([...orders, { ...buy, price: '106' }], {
      clientRequestId: 'mixed',
    })
    expect([placed.accepted, placed.refused]).to.deep.equal([2, 1])
    const [first, , last] = placed.results
    expect(first).to.have.property('order')
    expect(last && 'error' in last && last.error.details.code).to.equal('PRICE_BAND')

    const atomic = await client.placeBatch(orders, { mode: 'atomic', clientRequestId })
    expect(atomic.results.map((result) => 'order' in result && result.is_duplicate)).to.deep.equal([
      true,
      true,
    ])
    expect((await client.placeBatch(orders, { mode: 'atomic', clientRequestId })).is_duplicate).to.equal(true)
    const error = await failure(client.placeBatch([buy, { ...buy, price: '106' }], { mode: 'atomic' }))
    expect([error.code, error.details.index]).to.deep.equal(['PRICE_BAND', 1])

    const hashes = orders.map(({ hash }) => hash)
    const cancelled = await client.cancelBatch(hashes, { reason: 'done', clientRequestId: 'cancel them' })
    expect(cancelled.results.map((result) => 'order' in result && result.order.status)).to.deep.equal([
      'CANCELLED',
      'CANCELLED',
    ])
    expect(
      (await client.cancelBatch(hashes, { reason: 'done', clientRequestId: 'cancel them' })).is_duplicate,
    ).to.equal(true)
  })

  it('cancels what is left, and arms the switch', async () => {
    const swept = await client.cancelAll({ reason: 'night' })
    expect(swept.cancelled_count).to.be.greaterThan(0)
    expect(await client.cancelAll({ marketId: 1 })).to.include({ cancelled_count: 0, is_duplicate: true })
    expect(await client.cancelAllAfter(30)).to.include({ armed: true, remaining_seconds: 30 })
    expect((await client.cancelSwitch()).armed).to.equal(true)
    expect(await client.cancelAllAfter(0)).to.include({ armed: false, fire_at: null })
  })

  it('signs with a session key for its owner', async () => {
    const key = new Wallet(id('session'))
    const values = { permissions: 1, registered_at: 0, expires_at: 4_000_000_000, revoked_at: null, block: 1 }
    await world.db
      .insertInto('session_keys')
      .values({ owner: alice.address, key: key.address.toLowerCase(), ...values })
      .execute()
    const { apiKey, wallet } = alice
    const delegated = new Client({ baseUrl, apiKey, privateKey: wallet.privateKey, orderSigner: key })
    const { order } = await delegated.place(buy)
    expect(order).to.include({ maker: alice.address, signer: key.address.toLowerCase() })
  })
})

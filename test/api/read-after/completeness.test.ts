/** Reads while a projection is being filled: of its tables, and of other tables. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { fillStep } from '../../../indexer/project/fill.ts'
import { projectAll } from '../../../indexer/project/project-shards.ts'
import type { Projection } from '../../../indexer/project/projection.ts'
import { PROJECTIONS } from '../../../indexer/project/projections.ts'
import {
  type Answer,
  codeOf,
  createUser,
  type ExchangeFixture,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'

const killPoint = () => {}
const FILLING = [503, 'READ_MODEL_FILLING']
const PENDING = [503, 'HTV1_READ_AFTER_PENDING']
const bookmarkOf = ({ shard_id, shard_seq }: { shard_id: string; shard_seq: string }): string =>
  `read_after_shard_id=${shard_id}&read_after_shard_seq=${shard_seq}`

describe('a read while a projection is being filled', () => {
  let exchange: ExchangeFixture
  let alice: User
  let placed: Answer['body']
  let projections: readonly Projection[] = PROJECTIONS

  before(async () => {
    exchange = await startExchange({ READ_AFTER_WAIT_MS: '1000', READ_AFTER_POLL_MS: '50' })
    alice = await createUser(exchange.db, 'alice')
    for (let count = 0; count < 5; count++) placed = (await exchange.place(alice)).body
    await exchange.project()
    for (const path of [`/v0/orders/${placed.order.order_id}`, '/v0/markets'])
      expect((await exchange.get(alice, path)).status).to.equal(200)
  })
  after(() => exchange.stop())

  const options = () => ({ limit: 1, killPoint, projections })
  /** Raises the version of the projection and begins to fill it. Further steps project one row each. */
  async function beginFilling(name: string): Promise<void> {
    projections = projections.map((each) =>
      each.name === name ? { ...each, version: each.version + 1 } : each,
    )
    for (let steps = 0; steps < 3; steps++) await fillStep(exchange.db, options())
    // The API may rely on what it knew a second ago; the indexer waits for longer before it empties tables.
    await sleep(1_100)
  }
  const finish = () => projectAll(exchange.db, { ...options(), limit: 100 })

  it('when it has no bookmark, it is 503 READ_MODEL_FILLING with Retry-After, until the fill is complete', async () => {
    const path = `/v0/orders/${placed.order.order_id}`
    await beginFilling('orders')
    const answer = await exchange.get(alice, path)
    expect(codeOf(answer)).to.deep.equal(FILLING)
    expect(answer.headers['retry-after']).to.equal('2')
    expect(answer.body.details.retryable).to.equal(true)
    await finish()
    expect((await exchange.get(alice, path)).status).to.equal(200)
  })

  it('when it shows other tables, it answers as before, also with a bookmark', async () => {
    await beginFilling('orders')
    for (const path of ['/v0/markets', `/v0/users/by-eoa/${alice.address}`, '/v0/auctions?market_id=1']) {
      const marked = `${path}${path.includes('?') ? '&' : '?'}${bookmarkOf(placed.read_after)}`
      for (const each of [path, marked]) expect((await exchange.get(alice, each)).status, each).to.equal(200)
    }
    await finish()
  })

  it('when the projections of one read differ, it waits for both', async () => {
    const path = `/v0/balance/${alice.userId}/margin`
    for (const name of ['orders', 'balances']) {
      await beginFilling(name)
      expect(codeOf(await exchange.get(alice, path)), name).to.deep.equal(FILLING)
      await finish()
      expect((await exchange.get(alice, path)).status, name).to.equal(200)
    }
  })

  it('when it has a bookmark of before the fill, it waits for the fill and then shows the write', async () => {
    const path = `/v0/orders/${placed.order.order_id}?${bookmarkOf(placed.read_after)}`
    await beginFilling('orders')
    expect(codeOf(await exchange.get(alice, path))).to.deep.equal(PENDING)
    const waiting = exchange.get(alice, path)
    await sleep(200)
    await finish()
    const { status, body } = await waiting
    expect([status, body.order_id]).to.deep.equal([200, placed.order.order_id])
  })

  it('when the market of the read is complete, it does not wait for other markets', async () => {
    await exchange.db
      .updateTable('read.places')
      .set({ fill_to: 1_000_000 })
      .where('shard', '=', 'm2')
      .where('projection', '=', 'orders')
      .execute()
    await sleep(1_100)
    expect((await exchange.get(null, '/v0/orderbook/by-market/1')).status).to.equal(200)
    const marked = `/v0/orderbook/by-market/1?${bookmarkOf(placed.read_after)}`
    expect((await exchange.get(null, marked)).status).to.equal(200)
    expect(codeOf(await exchange.get(null, '/v0/orderbook/by-market/2'))).to.deep.equal(FILLING)
    expect(codeOf(await exchange.get(alice, `/v0/orders/by-user/${alice.userId}`))).to.deep.equal(FILLING)
    await exchange.db.updateTable('read.places').set({ fill_to: null }).execute()
  })

  it('when a market order is placed, it is accepted without an expected price, and an estimate is 503', async () => {
    await beginFilling('orders')
    const terms = { type: 'MARKET', quantity: '0.1' }
    const { status, body } = await exchange.place(alice, terms)
    expect(status, JSON.stringify(body)).to.be.within(200, 201)
    expect(body.expected_protection_price).to.equal(null)
    const estimate = await exchange.send(alice, 'POST', '/v0/orders/estimate', {
      ...{ market_id: 1, side: 'LONG', order_type: 'MARKET', leverage: 1, sizing_intent: 'max' },
    })
    expect(codeOf(estimate), JSON.stringify(estimate.body)).to.deep.equal(FILLING)
    await finish()
  })

  it('when a projection is not registered yet, its tables are incomplete', async () => {
    await exchange.db.deleteFrom('read.places').where('projection', '=', 'batches').execute()
    await sleep(1_100)
    expect(codeOf(await exchange.get(null, '/v0/auctions?market_id=1'))).to.deep.equal(FILLING)
    expect((await exchange.get(null, '/v0/orderbook/by-market/1')).status).to.equal(200)
    await finish()
    expect((await exchange.get(null, '/v0/auctions?market_id=1')).status).to.equal(200)
  })
})

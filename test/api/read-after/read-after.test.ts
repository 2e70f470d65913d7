import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'

const query = ({ shard_id, shard_seq }: { shard_id: string; shard_seq: string }): string =>
  `read_after_shard_id=${shard_id}&read_after_shard_seq=${shard_seq}`

describe('a read with a bookmark', () => {
  let exchange: ExchangeFixture
  let alice: User

  before(async () => {
    exchange = await startExchange({
      READ_AFTER_POLL_MS: '50',
    })
    alice = await createUser(exchange.db, 'alice')
    await exchange.project()
  })
  after(() => exchange.stop())

  it('when the write is projected, it shows the write; without a bookmark it does not wait', async () => {
    const { body: placed } = await exchange.place(alice)
    const path = `/v0/orders/${placed.order.order_id}`
    const blind = await exchange.get(alice, path)
    expect([blind.status, blind.body.details.code]).to.deep.equal([404, 'ORDER_NOT_FOUND'])

    const waiting = exchange.get(alice, `${path}?${query(placed.read_after)}`)
    await exchange.project('m1')
    const { status, body } = await waiting
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(body.order_id).to.equal(placed.order.order_id)
    expect((await exchange.get(alice, `${path}?${query(placed.read_after)}`)).status).to.equal(200)
  })

  it('when a notification is lost, the poll wakes it', async () => {
    const { body: placed } = await exchange.place(alice)
    const waiting = exchange.get(alice, `/v0/orders/by-user/${alice.userId}?${query(placed.read_after)}`)
    const { shard_seq } = placed.read_after
    await exchange.db
      .updateTable('read.places')
      .set({ seq: Number(shard_seq) })
      .where('shard', '=', 'm1')
      .execute()
    expect((await waiting).status).to.equal(200)
  })

  it('when another shard is projected, it keeps waiting for its own', async () => {
    const { body: placed } = await exchange.place(alice)
    const { status } = await exchange.get(
      alice,
      `/v0/balance/${alice.userId}/margin?read_after_shard_id=accounts.1&read_after_shard_seq=1`,
    )
    expect(status).to.equal(200)
    expect(placed.read_after.shard_id).to.equal('m1.1')
  })

  for (const half of ['read_after_shard_id=m1.1', 'read_after_shard_seq=1']) {
    it(`when the query has ${half} only, it answers 400`, async () => {
      const { status, body } = await exchange.get(alice, `/v0/orders/by-user/${alice.userId}?${half}`)
      expect([status, body.details.code]).to.deep.equal([400, 'INCOMPLETE_BOOKMARK'])
    })
  }

  it('when the projection runs concurrently, it never shows data older than its bookmark', async () => {
    const { body: placed } = await exchange.place(alice, { quantity: '0.01' })
    let seen = Number(placed.read_after.shard_seq)
    const reads: Promise<unknown>[] = []
    for (let round = 0; round < 20; round++) {
      const { body } = await exchange.place(alice, { quantity: '0.01' })
      seen = Number(body.read_after.shard_seq)
      const read = exchange.get(
        alice,
        `/v0/orders/by-user/${alice.userId}?limit=100&${query(body.read_after)}`,
      )
      reads.push(
        read.then(({ status, body: page }) => {
          expect(status).to.equal(200)
          const ids = page.orders.map(({ order_id }: { order_id: string }) => order_id)
          expect(ids).to.include(body.order.order_id)
        }),
      )
      await exchange.project('m1')
    }
    await Promise.all(reads)
    expect(seen).to.be.greaterThan(20)
  })
})

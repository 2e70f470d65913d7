import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { LiveClient } from '../../support/live-client.ts'
import {
  codeOf,
  createUser,
  type ExchangeFixture,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { bodies, newRequestId, sendBatch } from '../support/place-batch.ts'
import { untilLockWait } from '../support/wait.ts'

describe('the limits of large pages', () => {
  let exchange: ExchangeFixture
  let alice: User
  let bob: User

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice', '100000000')
    bob = await createUser(exchange.db, 'bob')
    for (let batch = 0; batch < 2; batch++)
      await sendBatch(exchange, alice, bodies(alice, Array(50).fill({ quantity: '0.01' })))
    await exchange.project()
  })
  after(() => exchange.stop())

  const page = (user: User, limit: number) =>
    exchange.get(user, `/v0/orders/by-user/${user.userId}?limit=${limit}`)

  /** Runs `work` while reads of the table wait. */
  const locked = (table: string, work: () => Promise<void>): Promise<void> =>
    exchange.db.transaction().execute(async (tx) => {
      await sql.raw(`lock table ${table} in access exclusive mode`).execute(tx)
      await work()
    })

  it('when an account reads two large pages, a third is rejected until one is read, and other pages are not', async () => {
    const waiting: ReturnType<typeof page>[] = []
    await locked('read.orders', async () => {
      waiting.push(page(alice, 1_000), page(alice, 101))
      await untilLockWait(exchange.db, 2)
      const third = await page(alice, 1_000)
      expect(codeOf(third)).to.deep.equal([429, 'LARGE_PAGE_LIMIT'])
      expect(third.body.details).to.include({
        field: 'limit',
        received: 1_000,
        expected: 'at most 2 pages of more than 100 rows at a time',
        retryable: true,
      })
      expect(third.body.details).to.not.have.property('outcome')
      expect(third.headers['retry-after']).to.equal('1')
      waiting.push(page(alice, 100), page(bob, 1_000))
    })
    for (const { status } of await Promise.all(waiting)) expect(status).to.equal(200)
    expect((await page(alice, 1_000)).status).to.equal(200)
  })

  it('when clients disconnect while their large pages are read, the pages no longer count', async () => {
    await exchange.api.app.listen({ port: 0, host: '127.0.0.1' })
    const { port } = exchange.api.app.server.address() as AddressInfo
    const url = `http://127.0.0.1:${port}/v0/orders/by-user/${alice.userId}?limit=1000`
    const headers = { authorization: `Key ${alice.apiKey}` }
    const abort = new AbortController()
    await locked('read.orders', async () => {
      const lost = [1, 2].map(() => fetch(url, { headers, signal: abort.signal }).catch(() => {}))
      await untilLockWait(exchange.db, 2)
      expect((await fetch(url, { headers })).status).to.equal(429)
      abort.abort()
      await Promise.all(lost)
      // The server learns of the disconnects a moment later; the page then waits for the lock like theirs.
      const again = new AbortController()
      let status: number | null = 429
      while (status === 429)
        status = await Promise.race([
          fetch(url, { headers, signal: again.signal }).then(
            (answer) => answer.status,
            () => null,
          ),
          untilLockWait(exchange.db, 3).then(() => null),
        ])
      expect(status).to.equal(null)
      again.abort()
    })
  })

  it('when clients without an account read large pages, those of an address count together', async () => {
    const waiting: Promise<unknown>[] = []
    const read = () => exchange.get(null, '/v0/fills/by-market/1?limit=1000')
    await locked('read.fills', async () => {
      waiting.push(read(), read())
      await untilLockWait(exchange.db, 2)
      expect(codeOf(await read())).to.deep.equal([429, 'LARGE_PAGE_LIMIT'])
    })
    await Promise.all(waiting)
    expect((await read()).status).to.equal(200)
  })

  async function remaining(bucket: string): Promise<number> {
    const { body } = await exchange.get(alice, '/v0/me/limits')
    return body.limits.find((each: { bucket: string }) => each.bucket === bucket).remaining
  }

  it('when a page is long, it costs one read for each 32 KiB', async () => {
    const before = await remaining('reads')
    const { body } = await page(alice, 100)
    const bytes = JSON.stringify(body).length
    expect(bytes).to.be.above(65_536)
    // The second look at the limits is a read too.
    expect(before - (await remaining('reads'))).to.equal(2 + Math.floor(bytes / 32_768))
  })

  it('when cancels are sent as a batch, it costs one cancel for each five orders, over REST and over the live feed', async () => {
    const base = `http://127.0.0.1:${(exchange.api.app.server.address() as AddressInfo).port}`
    const client = await LiveClient.open(base, { headers: { authorization: `Key ${alice.apiKey}` } })
    for (const [orders, cost] of [
      [1, 1],
      [5, 1],
      [6, 2],
      [100, 20],
    ] as const) {
      const hashOf = (at: number) => `0x${(at + 1).toString(16).padStart(64, '0')}`
      const body = () => ({
        client_request_id: newRequestId(),
        orderHashes: Array.from({ length: orders }, (_, at) => hashOf(at)),
      })
      const before = await remaining('cancels')
      const { status } = await exchange.send(alice, 'POST', '/v0/orders/cancel/batch', body())
      expect(status).to.equal(200)
      expect(before - (await remaining('cancels')), `${orders} orders`).to.equal(cost)
      expect((await client.call('cancel_batch', { body: body() })).type).to.equal('result')
      expect(before - (await remaining('cancels')), `${orders} orders, live`).to.equal(2 * cost)
    }
    await client.close()
  })
})

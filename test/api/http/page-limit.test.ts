import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import {
  codeOf,
  createUser,
  type ExchangeFixture,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { bodies, sendBatch } from '../support/place-batch.ts'
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

  it('when an account reads two large pages, a third is rejected until one is read, and other pages are not', async () => {
    const waiting: ReturnType<typeof page>[] = []
    await exchange.db.transaction().execute(async (tx) => {
      await tx.executeQuery({
        sql: 'lock table read.orders in access exclusive mode',
        parameters: [],
        query: { kind: 'RawNode' },
      } as never)
      waiting.push(page(alice, 1_000), page(alice, 101))
      await untilLockWait(exchange.db, 2)
      const third = await page(alice, 1_000)
      expect(codeOf(third)).to.deep.equal([429, 'LARGE_PAGE_LIMIT'])
      expect(third.body.details).to.include({ field: 'limit', received: 1_000, retryable: true })
      expect(third.headers['retry-after']).to.equal('1')
      waiting.push(page(alice, 100), page(bob, 1_000))
    })
    for (const { status } of await Promise.all(waiting)) expect(status).to.equal(200)
    expect((await page(alice, 1_000)).status).to.equal(200)
  })

  it('when a page is long, it costs one read for each 32 KiB', async () => {
    const remaining = async (): Promise<number> => {
      const { body } = await exchange.get(alice, '/v0/me/limits')
      return body.limits.find(({ bucket }: { bucket: string }) => bucket === 'reads').remaining
    }
    const before = await remaining()
    const { body } = await page(alice, 100)
    const bytes = JSON.stringify(body).length
    expect(bytes).to.be.above(65_536)
    // The second look at the limits is a read too.
    expect(before - (await remaining())).to.equal(2 + Math.floor(bytes / 32_768))
  })
})

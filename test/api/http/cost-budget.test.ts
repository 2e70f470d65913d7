/** The budget of all limits together: each limit can be used to the full by itself, all of them together allow no more than one does. */
import { expect } from 'chai'
import fc from 'fast-check'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import type { Caller } from '../../../api/auth/caller.ts'
import { createLocalLimits } from '../../../api/http/access.ts'
import { BUCKETS, type Bucket } from '../../../api/http/buckets.ts'
import { shareOf } from '../../../api/http/cost-budget.ts'
import { createLocalCounter } from '../../../api/http/local-counter.ts'
import type { Millis } from '../../../domain/units.ts'
import { waitFor } from '../../support/patience.ts'
import { emptyRedis, ON_REDIS, redisUrl } from '../../support/redis.ts'
import { LIMITS } from '../support/cost-budget.ts'
import {
  type Answer,
  createUser,
  type Env,
  type ExchangeFixture,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { openRawFeed } from '../support/raw-feed.ts'

/** These are not limited by their processor time. */
const OTHERS: ReadonlySet<Bucket> = new Set(['faucet', 'auth', 'relays', 'adjustments'])
const BUSY = BUCKETS.filter((bucket) => !OTHERS.has(bucket))

const callerOf = (userId: number): Caller => ({ userId, credential: 'api_key', scope: 'trade' }) as never

/** Limits at a moment that does not pass. */
function limitsAt(now = 1_000) {
  const limits = createLocalLimits(createLocalCounter({ now: () => now as Millis }), LIMITS)
  return (bucket: Bucket, userId = 1, ip = '192.0.2.1') =>
    limits.count(bucket, { ip, caller: callerOf(userId) }) !== null
}

const most = (bucket: Bucket): number => LIMITS[bucket] * LIMITS.windowSeconds

/** How many requests are accepted until one is refused, and at most one more than the limit allows. */
function accepted(send: () => boolean, bound: number): number {
  let count = 0
  while (count <= bound && send()) count++
  return count
}

describe('the budget of all limits of an account', () => {
  it('when one limit is used alone, it can be used to the full', () => {
    for (const bucket of BUCKETS) {
      const count = limitsAt()
      expect(
        accepted(() => count(bucket), most(bucket)),
        bucket,
      ).to.equal(most(bucket))
    }
  })

  it('when limits are used together in any order, they allow no more than one alone', () => {
    const requests = fc.array(fc.constantFrom(...BUSY), { minLength: 500, maxLength: 3_000 })
    fc.assert(
      fc.property(requests, (buckets) => {
        const count = limitsAt()
        const used = buckets.reduce(
          (sum, bucket) => sum + (count(bucket) ? shareOf(bucket) / most(bucket) : 0),
          0,
        )
        expect(used).to.be.at.most(1 + 1e-9)
      }),
      { numRuns: 50 },
    )
  })

  it('when other requests have used the budget up, an account can still cancel', () => {
    const count = limitsAt()
    for (const bucket of BUSY) if (bucket !== 'cancels') accepted(() => count(bucket), most(bucket))
    expect(count('reads')).to.equal(false)
    expect(accepted(() => count('cancels'), most('cancels'))).to.be.within(20, 30)
  })

  it('when a market maker sends 20 batches of 50 and 5 reads per second, none is refused', () => {
    const count = limitsAt()
    const { windowSeconds } = LIMITS
    for (const [bucket, perSecond] of [
      ['batches', 20],
      ['reads', 5],
    ] as const)
      expect(
        accepted(() => count(bucket), perSecond * windowSeconds - 1),
        bucket,
      ).to.equal(perSecond * windowSeconds)
  })

  it('when the accounts of an address are many, they share the budgets of four', () => {
    const count = limitsAt()
    let all = 0
    for (let userId = 1; userId <= 6; userId++) all += accepted(() => count('reads', userId), most('reads'))
    expect(all).to.equal(4 * most('reads'))
    expect(count('reads', 7)).to.equal(false)
    expect(count('reads', 7, '192.0.2.2')).to.equal(true)
  })
})

/** One read, one order and twenty cancels per second: 20 s of them are a budget. */
const SMALL: Env = {
  RATE_LIMIT_READS: '1',
  RATE_LIMIT_ORDERS: '1',
  RATE_LIMIT_CANCELS: '20',
  RATE_LIMIT_WINDOW_SECONDS: '20',
}
const UNKNOWN = `0x${'ab'.repeat(32)}`

for (const [title, database] of [
  ['in the process', null],
  [`shared by processes ${ON_REDIS}`, 12],
] as const)
  describe(`a budget that is used up, ${title}`, () => {
    let exchange: ExchangeFixture
    let users = 0

    before(async function () {
      const url = database === null ? '' : redisUrl(database)
      if (url === null) return this.skip()
      if (url !== '') (await emptyRedis(url)).disconnect()
      exchange = await startExchange({ ...SMALL, REDIS_URL: url, REDIS_TIMEOUT_MS: '10000' })
    })
    after(() => exchange?.stop())

    const newUser = (): Promise<User> => createUser(exchange.db, `trader ${users++}`)
    const read = (user: User) => exchange.get(user, '/v0/me/limits')
    const place = (user: User) => exchange.send(user, 'POST', '/v0/orders', signedBody(user).body)

    async function exhaust(user: User): Promise<void> {
      const answers = await Promise.all(Array.from({ length: 10 }, () => [read(user), place(user)]).flat())
      expect(answers.map(({ status }) => status)).to.deep.equal(Array(20).fill(200))
    }

    function expectRefused({ status, body, headers }: Answer): void {
      expect([status, body.details.code, body.details.scope]).to.deep.equal([429, 'RATE_LIMITED', 'cost'])
      expect(Number(headers['retry-after'])).to.be.within(1, 20)
    }

    it('when reads and orders have used it up, both are refused by name, and cancels are not', async () => {
      const user = await newUser()
      await exhaust(user)
      expectRefused(await read(user))
      const refused = await place(user)
      expectRefused(refused)
      expect(refused.body.details.outcome).to.equal('not_read')
      const cancels = await Promise.all(Array.from({ length: 20 }, () => exchange.cancel(user, UNKNOWN)))
      expect(cancels.map(({ status }) => status)).to.deep.equal(Array(20).fill(404))
      expectRefused(await exchange.cancel(user, UNKNOWN))
      // Another account has a budget of its own.
      expect((await read(await newUser())).status).to.equal(200)
    })

    it('when half of it is used, headers and limits show what is left', async () => {
      const user = await newUser()
      for (let each = 0; each < 9; each++) await place(user)
      const { headers, body } = await read(user)
      expect([headers['ratelimit-limit'], headers['ratelimit-remaining']].map(Number)).to.deep.equal([20, 10])
      expect(body.cost).to.include({ limit: 19_000_000, window_seconds: 20, remaining: 9_500_000 })
    })

    it('when the signature of a placement is refused, it counts as two, over REST and the live feed', async () => {
      const user = await newUser()
      const wrong = () => ({ ...signedBody(user).body, leverage: 7 })
      const left = async (): Promise<number> => {
        const { body } = await read(user)
        return body.limits.find(({ bucket }: { bucket: string }) => bucket === 'orders').remaining
      }
      const before = await left()
      const { status, body } = await exchange.send(user, 'POST', '/v0/orders', wrong())
      expect([status, body.details.code]).to.deep.equal([400, 'SIGNATURE_MISMATCH'])
      await waitFor(left, (remaining) => remaining === before - 2)
      await exchange.api.app.listen({ port: 0, host: '127.0.0.1' }).catch(() => {})
      const { port } = exchange.api.app.server.address() as { port: number }
      const feed = await openRawFeed(`http://127.0.0.1:${port}`, user.apiKey)
      feed.send({ op: 'place', id: 1, body: wrong() })
      await waitFor(left, (remaining) => remaining === before - 4)
      feed.close()
    })

    it('when it is used up over REST, the live feed refuses orders of the account, too', async () => {
      const user = await newUser()
      await exchange.api.app.listen({ port: 0, host: '127.0.0.1' }).catch(() => {})
      const { port } = exchange.api.app.server.address() as { port: number }
      const feed = await openRawFeed(`http://127.0.0.1:${port}`, user.apiKey)
      await exhaust(user).catch(() => {})
      feed.send({ op: 'place', id: 1, body: signedBody(user).body })
      const [error] = await waitFor(
        async () => feed.messages.filter(({ type }) => type === 'error'),
        ({ length }) => length > 0,
      )
      expect(error?.text).to.include('"scope":"cost"').and.include('"outcome":"not_read"')
      feed.close()
    })
  })

describe('budgets of an address', () => {
  let exchange: ExchangeFixture

  beforeEach(async () => {
    exchange = await startExchange({ ...SMALL, REDIS_URL: '', RATE_LIMIT_ACCOUNTS: '2' })
  })
  afterEach(() => exchange.stop())

  const PUBLIC = '/v0/markets'
  const read = async (authorization?: string): Promise<Answer> => {
    const headers = authorization === undefined ? {} : { authorization }
    const {
      statusCode: status,
      headers: sent,
      body,
    } = await exchange.api.app.inject({ url: PUBLIC, headers })
    return { status, headers: sent, body: JSON.parse(body) } as Answer
  }

  it('when requests of an account are refused, they use up nothing that other accounts of the address share', async () => {
    const user = await createUser(exchange.db, 'busy')
    const send = () => [
      exchange.get(user, '/v0/me/limits'),
      exchange.send(user, 'POST', '/v0/orders', signedBody(user).body),
    ]
    await Promise.all(Array.from({ length: 10 }, send).flat())
    const refused = await Promise.all(Array.from({ length: 10 }, send).flat())
    expect(refused.map(({ body }) => body.details?.scope)).to.deep.equal(Array(20).fill('cost'))
    expect((await exchange.get(await createUser(exchange.db, 'other'), '/v0/me/limits')).status).to.equal(200)
  })

  it('when anonymous requests have used theirs up, an account still reads public data, and an invalid credential does not', async () => {
    const anonymous = await Promise.all(Array.from({ length: 22 }, () => read()))
    expect(anonymous.map(({ status }) => status).toSorted()).to.deep.equal([...Array(20).fill(200), 429, 429])
    const user = await createUser(exchange.db, 'trader')
    expect((await read('Key cb_invalid')).status).to.equal(429)
    expect((await read(`Key ${user.apiKey}x`)).status).to.equal(429)
    const own = await Promise.all(Array.from({ length: 21 }, () => read(`Key ${user.apiKey}`)))
    expect(own.map(({ status }) => status).toSorted()).to.deep.equal([...Array(20).fill(200), 429])
  })

  for (const [path, reads, body] of [
    ['/v0/orders/validate', 3, {}],
    ['/v0/orders/calculate-quantity', 3, { market_id: 1, side: 'LONG', usd_amount: 1_000 }],
    ['/v0/orders/estimate', 3, { market_id: 1, side: 'LONG', order_type: 'MARKET', sizing_intent: 'max' }],
  ] as const)
    it(`when a request of ${path} is answered, it has cost ${reads} reads`, async () => {
      const user = await createUser(exchange.db, 'trader')
      const sent = path.endsWith('validate') ? signedBody(user).body : body
      expect((await exchange.send(user, 'POST', path, sent)).body).to.not.have.property('error')
      const { body: limits } = await exchange.get(user, '/v0/me/limits')
      const [{ limit, remaining }] = limits.limits.filter(
        ({ bucket }: { bucket: string }) => bucket === 'reads',
      )
      expect(limit - remaining).to.equal(reads + 1)
    })
})

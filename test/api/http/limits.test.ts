import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { after, before, beforeEach, describe, it } from 'mocha'
import { type Api, compose } from '../../../api/compose.ts'
import { readConfig } from '../../../api/config.ts'
import { createLogger } from '../../../service/logger.ts'
import { PATIENCE } from '../../support/patience.ts'
import { type CutProxy, startProxy } from '../../support/proxy.ts'
import { emptyRedis, ON_REDIS, redisUrl } from '../../support/redis.ts'
import {
  apiEnv,
  createUser,
  type ExchangeFixture,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'

const DATABASE = 10
const LIMITS = {
  RATE_LIMIT_READS: '1',
  RATE_LIMIT_FAUCET: '1',
  RATE_LIMIT_ADDRESS: '2',
  RATE_LIMIT_FAILURES: '1',
  RATE_LIMIT_WINDOW_SECONDS: '20',
  FAUCET_WAIT_MS: '1',
  // A busy machine must not count in one process what both are to count.
  REDIS_TIMEOUT_MS: '10000',
}

describe(`rate limits of two API processes ${ON_REDIS}`, function () {
  this.timeout(40_000)
  const url = redisUrl(DATABASE)
  let redis: Redis
  let proxy: CutProxy
  let exchange: ExchangeFixture
  let other: Api
  let alice: User
  let addresses = 0

  before(async function () {
    if (url === null) return this.skip()
    redis = await emptyRedis(url)
    proxy = await startProxy(url)
    const env = { ...LIMITS, REDIS_URL: proxy.url }
    exchange = await startExchange(env)
    other = await compose(
      readConfig(apiEnv(exchange.url, env)),
      createLogger('api', 'silent'),
      exchange.engine,
    )
    await exchange.project()
    await untilCounted(exchange.api)
    await untilCounted(other)
  })
  beforeEach(async () => {
    alice = await createUser(exchange.db, `alice ${++addresses}`)
  })
  after(async () => {
    if (url === null) return
    await other.stop()
    await exchange.stop()
    await proxy.cut()
    await redis.flushdb()
    redis.disconnect()
  })

  const ask = async (
    { app }: Api,
    { method = 'GET', path = '/v0/time', user = null as User | null, from = `10.0.0.${addresses}` } = {},
  ) => {
    const headers = user === null ? {} : { authorization: `Key ${user.apiKey}` }
    const { statusCode } = await app.inject({
      method: method as 'GET',
      url: path,
      headers,
      remoteAddress: from,
    })
    return statusCode
  }

  /** Waits until the process counts its requests in Redis. */
  async function untilCounted(api: Api): Promise<void> {
    for (let tries = 0; tries < 200 * PATIENCE; tries++) {
      const from = `10.1.${++addresses % 250}.1`
      await ask(api, { from })
      if ((await redis.get(`clearbatch-limit-address:${from}`)) !== null) return
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
    throw new Error('nothing is counted in Redis')
  }

  const times = async (count: number, work: () => Promise<number>): Promise<number[]> => {
    const answers: number[] = []
    for (let n = 0; n < count; n++) answers.push(await work())
    return answers
  }

  it('when both processes receive requests of one account, they count them together', async () => {
    const path = `/v0/balance/${alice.userId}/margin`
    const first = await times(12, () => ask(exchange.api, { path, user: alice, from: '10.2.0.1' }))
    const second = await times(10, () => ask(other, { path, user: alice, from: '10.2.0.2' }))
    expect([...first, ...second]).to.deep.equal([...Array(20).fill(200), 429, 429])
    expect(await ask(exchange.api, { path, user: alice, from: '10.2.0.3' })).to.equal(429)
    expect(await redis.pttl(`clearbatch-limit-reads:${alice.userId}`)).to.be.within(1, 20_000)
  })

  it('when the caller asks one process for its limits, they include the requests to the other, and asking counts as one read', async () => {
    const left = async ({ app }: Api, from: string): Promise<number> => {
      const headers = { authorization: `Key ${alice.apiKey}` }
      const { body } = await app.inject({ url: '/v0/me/limits', headers, remoteAddress: from })
      const { limits } = JSON.parse(body) as { limits: { bucket: string; remaining: number }[] }
      return limits.find(({ bucket }) => bucket === 'reads')?.remaining ?? -1
    }
    expect(await left(exchange.api, '10.4.0.1')).to.equal(19)
    expect(await left(other, '10.4.0.2')).to.equal(18)
    expect(await left(exchange.api, '10.4.0.1')).to.equal(17)
  })

  it('when an address presents refused credentials to both processes, they count them together', async () => {
    const guess = async ({ app }: Api, n: number): Promise<number> => {
      const headers = { authorization: `Key cb_${String(n).padStart(43, '0')}` }
      return (await app.inject({ url: '/v0/me', headers, remoteAddress: '10.5.0.1' })).statusCode
    }
    const first = await times(19, async () => guess(exchange.api, 1))
    expect(await guess(other, 2)).to.equal(401)
    expect([
      first,
      await guess(other, 3),
      await guess(exchange.api, 4),
      await guess(exchange.api, 5),
    ]).to.deep.equal([...[Array(19).fill(401), 429, 401, 429]])
  })

  it('when requests come from several addresses of one IPv6 network, they share one limit', async () => {
    const answers = await times(22, () => ask(exchange.api, { from: `2001:db8:0:7::${++addresses}` }))
    expect(answers).to.deep.equal([...Array(20).fill(200), 429, 429])
    expect(await ask(exchange.api, { from: '2001:db8:0:8::1' })).to.equal(200)
  })

  it('when Redis is down, each process counts by itself, none is unlimited, and only challenges and rotations fail', async () => {
    await proxy.cut()
    for (const path of ['/v0/auth/challenge', '/v0/me/api-key/rotate'])
      expect(await ask(exchange.api, { method: 'POST', path, user: alice, from: '10.6.0.1' })).to.equal(503)
    const faucet = () => ask(exchange.api, { method: 'POST', path: '/v0/faucet', user: alice })
    expect(await times(22, faucet)).to.deep.equal([...Array(20).fill(408), 429, 429])
    const login = () => ask(exchange.api, { path: '/v0/balance/1/margin', from: '10.3.0.1' })
    expect(await times(42, login)).to.deep.equal([...Array(40).fill(401), 429, 429])
    expect(await ask(other)).to.equal(200)
    await proxy.restore()
    await untilCounted(exchange.api)
    await untilCounted(other)
  })

  it('when Redis does not respond, it answers requests without waiting for Redis', async () => {
    const env = { ...LIMITS, REDIS_URL: proxy.url, REDIS_TIMEOUT_MS: '50' }
    const hasty = await compose(
      readConfig(apiEnv(exchange.url, env)),
      createLogger('api', 'silent'),
      exchange.engine,
    )
    await untilCounted(hasty)
    await redis.call('CLIENT', 'PAUSE', '4000', 'ALL')
    let isPaused = true
    const resumed = redis.ping().then(() => {
      isPaused = false
    })
    expect(await times(5, () => ask(hasty))).to.deep.equal(Array(5).fill(200))
    expect(isPaused).to.equal(true)
    await resumed
    await hasty.stop()
  })
})

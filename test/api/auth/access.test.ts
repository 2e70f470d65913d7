import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { type Authenticate, createAuthenticator } from '../../../api/auth/authenticator.ts'
import { createApiKey } from '../../../api/auth/credentials.ts'
import { createKeyUses } from '../../../api/auth/key-uses.ts'
import { BUCKETS } from '../../../api/http/buckets.ts'
import type { Notifications } from '../../../api/ports.ts'
import { createLogger } from '../../../service/logger.ts'
import {
  createUser,
  type Env,
  type ExchangeFixture,
  startExchange,
  startSecondApi,
  type User,
} from '../support/exchange-fixture.ts'

/** POSTs that only compute: a read-only key may call them. */
const COMPUTING = [
  '/v0/orders/validate',
  '/v0/orders/estimate',
  '/v0/orders/calculate-quantity',
  '/v0/session-keys/prepare',
]

describe('what a credential allows', () => {
  let exchange: ExchangeFixture
  let alice: User

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    await exchange.project()
  })
  after(() => exchange.stop())

  const keyWith = async (user: User, scope: 'trade' | 'read', networks: string[] | null): Promise<User> => ({
    ...user,
    apiKey: await createApiKey(exchange.db, user.userId, { scope, allowed_addresses: networks }),
  })

  it('when a key is read-only, every endpoint that takes effect refuses it with READ_ONLY_KEY, and no other does', async () => {
    const reader = await keyWith(await createUser(exchange.db, 'reader'), 'read', null)
    const { paths } = (await exchange.get(null, '/v0/openapi.json')).body
    const before = await exchange.state()
    let refused = 0
    for (const [path, operations] of Object.entries(paths as Record<string, Record<string, unknown>>)) {
      for (const method of Object.keys(operations)) {
        const { security } = operations[method] as { security: readonly object[] }
        if (security.length === 0) continue
        const url = path.replace(/\{\w+\}/g, String(reader.userId))
        const isRead = method === 'get' || COMPUTING.includes(path)
        const send = method.toUpperCase() as 'GET' | 'POST' | 'DELETE'
        const { status, body } = await exchange.send(reader, send, url, isRead ? undefined : {})
        expect(body.details?.code === 'READ_ONLY_KEY', `${send} ${path}`).to.equal(!isRead)
        if (isRead) continue
        expect([status, body.details.outcome]).to.deep.equal([403, 'not_read'])
        refused++
      }
    }
    expect(refused).to.be.at.least(9)
    expect(await exchange.state()).to.deep.equal(before)
  })

  it('when a read-only key sends requests that it may not make, they use up no limit of the account', async () => {
    const limits = { RATE_LIMIT_AUTH: '1', RATE_LIMIT_CANCELS: '1', RATE_LIMIT_WINDOW_SECONDS: '20' }
    const strict = await startSecondApi(exchange, limits)
    const reader = await keyWith(await createUser(exchange.db, 'refused'), 'read', null)
    for (const path of ['/v0/auth/challenge', '/v0/orders/cancel/all']) {
      const codes: unknown[] = []
      for (let n = 0; n < 21; n++) codes.push((await strict.send(reader, 'POST', path, {})).body.details.code)
      expect(codes, path).to.deep.equal(Array(21).fill('READ_ONLY_KEY'))
    }
    const left = (await strict.get(reader, '/v0/me/limits')).body.limits
    for (const name of ['auth', 'cancels'])
      expect(left.find(({ bucket }: { bucket: string }) => bucket === name)).to.include({ remaining: 20 })
    await strict.stop()
  })

  it('when a key has a list of addresses, it is accepted from them alone', async () => {
    const listed = await keyWith(await createUser(exchange.db, 'listed'), 'trade', [
      ...['192.0.2.7', '198.51.100.0/24', '2001:db8:1::/48'],
    ])
    const from = async (remoteAddress: string): Promise<unknown> => {
      const { statusCode, body } = await exchange.api.app.inject({
        ...{ url: '/v0/me', remoteAddress, headers: { authorization: `Key ${listed.apiKey}` } },
      })
      return statusCode === 200 ? 200 : JSON.parse(body).details.code
    }
    const accepted = [
      ...['192.0.2.7', '::ffff:192.0.2.7', '198.51.100.0', '198.51.100.255', '2001:db8:1:ffff::1'],
    ]
    for (const address of accepted) expect(await from(address), address).to.equal(200)
    for (const address of ['192.0.2.8', '198.51.101.0', '2001:db8:2::1', '127.0.0.1', '::1'])
      expect(await from(address), address).to.equal('ADDRESS_NOT_ALLOWED')
  })

  it('when the key is used behind a proxy, only entries of trusted proxies decide the address', async () => {
    const listed = await keyWith(await createUser(exchange.db, 'proxied'), 'trade', ['192.0.2.7'])
    const proxied = await startSecondApi(exchange, { TRUST_PROXY: '1' })
    const ask = async (api: ExchangeFixture, forwarded: string, remoteAddress = '10.0.0.1') => {
      const headers = { authorization: `Key ${listed.apiKey}`, 'x-forwarded-for': forwarded }
      return (await api.api.app.inject({ url: '/v0/me', remoteAddress, headers })).statusCode
    }
    expect(await ask(proxied, '192.0.2.7')).to.equal(200)
    expect(await ask(proxied, '192.0.2.7, 203.0.113.9')).to.equal(403)
    expect(await ask(proxied, 'nonsense')).to.equal(403)
    expect(await ask(exchange, '192.0.2.7')).to.equal(403)
    expect(await ask(exchange, '203.0.113.9', '192.0.2.7')).to.equal(200)
    await proxied.stop()
  })

  it('when a key is used, the time is recorded at most once a minute, whatever the number of requests and processes', async () => {
    const user = await createUser(exchange.db, 'used')
    const logger = createLogger('test', 'silent')
    const uses = [createKeyUses(exchange.db, logger), createKeyUses(exchange.db, logger)]
    const { key_hash: keyHash } = await exchange.db
      .selectFrom('api_keys')
      .selectAll()
      .where('user_id', '=', user.userId)
      .executeTakeFirstOrThrow()
    const record = async (at: number): Promise<number | null | undefined> => {
      for (const each of uses) {
        each.note({ userId: user.userId, keyHash, at })
        await each.flush()
      }
      const query = exchange.db.selectFrom('api_keys').select('last_used_at')
      return (await query.where('user_id', '=', user.userId).executeTakeFirst())?.last_used_at
    }
    expect((await exchange.get(user, '/v0/me')).body.api_key.last_used_at).to.equal(null)
    expect(await record(1_000_000)).to.equal(1_000_000)
    expect(await record(1_059_999)).to.equal(1_000_000)
    expect(await record(1_060_000)).to.equal(1_060_000)
    await createApiKey(exchange.db, user.userId)
    expect(await record(2_000_000), 'uses of the replaced key').to.equal(null)
    for (const each of uses) await each.stop()
  })

  /** An authenticator without a listening connection, or with one, whose first read of a key is followed by `afterRead`. */
  function authenticatorOf(
    notifications: Pick<Notifications, 'on' | 'isListening'>,
    afterRead: () => Promise<void>,
  ): Authenticate {
    let next: (() => Promise<void>) | null = afterRead
    const db = exchange.db.withPlugin({
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        const run = next
        next = null
        await run?.()
        return result
      },
    })
    const logger = createLogger('test', 'silent')
    return createAuthenticator({
      ...{ db, bearer: null, clock: { now: Date.now } as never, keyUses: createKeyUses(db, logger) },
      failures: { check() {}, async count() {} },
      notifications: { onLost() {}, announce() {}, ...notifications },
    })
  }
  /** The key authenticates once, and is refused afterwards. */
  async function expectOneUse(authenticate: Authenticate, user: User): Promise<void> {
    const presented = { authorization: `Key ${user.apiKey}`, address: '127.0.0.1' }
    expect((await authenticate(presented)).userId).to.equal(user.userId)
    const error = await authenticate(presented).catch((refused: { code: string }) => refused)
    expect(error).to.have.property('code', 'API_KEY_UNKNOWN')
  }

  it('when a key is replaced while it is being looked up, the old key does not enter the cache', async () => {
    const user = await createUser(exchange.db, 'raced')
    const heard: ((payload: string) => void)[] = []
    const on = (_: string, listener: (payload: string) => void) => void heard.push(listener)
    const authenticate = authenticatorOf({ on, isListening: () => true }, async () => {
      await createApiKey(exchange.db, user.userId)
      for (const listener of heard) listener(String(user.userId))
    })
    await expectOneUse(authenticate, user)
  })

  it('when a key is replaced while a request reads it, before the process listens again, the old one is not cached', async () => {
    const user = await createUser(exchange.db, 'replaced unheard')
    let isListening = false
    const authenticate = authenticatorOf({ on() {}, isListening: () => isListening }, async () => {
      await createApiKey(exchange.db, user.userId)
      isListening = true
    })
    await expectOneUse(authenticate, user)
  })

  it('when the caller reads its limits, they show what is left and count one read', async () => {
    const limited = await startSecondApi(exchange, {
      RATE_LIMIT_READS: '2',
      RATE_LIMIT_CANCELS: '7',
      RATE_LIMIT_WINDOW_SECONDS: '60',
    })
    const limits = async () => (await limited.get(alice, '/v0/me/limits')).body.limits
    const { body: me } = await limited.get(alice, '/v0/me')
    expect(me.limits).to.have.length(BUCKETS.length)
    const first = (await limits()).find((each: { bucket: string }) => each.bucket === 'reads')
    expect(first).to.include({ limit: 120, window_seconds: 60, remaining: 118 })
    expect(first.reset_seconds).to.be.within(1, 60)
    const all = await limits()
    expect(all.find((each: { bucket: string }) => each.bucket === 'reads').remaining).to.equal(117)
    expect(all.find((each: { bucket: string }) => each.bucket === 'cancels')).to.include({
      limit: 420,
      remaining: 420,
    })
    await limited.stop()
  })

  it('when an address presents many refused credentials, it must wait, and keys in use from there do not', async () => {
    const strict = await startSecondApi(exchange, {
      RATE_LIMIT_FAILURES: '1',
      RATE_LIMIT_WINDOW_SECONDS: '60',
    })
    const ask = async (authorization: string, remoteAddress = '203.0.113.5'): Promise<unknown> => {
      const headers: Env = { authorization }
      const { statusCode, body } = await strict.api.app.inject({ url: '/v0/me', remoteAddress, headers })
      return statusCode === 200 ? 200 : JSON.parse(body).details.code
    }
    const [bob, carol] = [await createUser(exchange.db, 'bob'), await createUser(exchange.db, 'carol')]
    // The notifications of the new keys drop them from the cache.
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(await ask(`Key ${bob.apiKey}`)).to.equal(200)
    const wrong = `Key cb_${'x'.repeat(43)}`
    for (let n = 0; n < 60; n++) expect(await ask(n % 2 ? wrong : 'Key short')).to.equal('API_KEY_UNKNOWN')
    expect(await ask(wrong)).to.equal('RATE_LIMITED')
    expect(await ask(`Key ${carol.apiKey}`)).to.equal('RATE_LIMITED')
    expect(await ask(`Key ${bob.apiKey}`)).to.equal(200)
    expect(await ask(wrong, '203.0.113.6')).to.equal('API_KEY_UNKNOWN')
    await strict.stop()
  })

  it('when the shared counters are unreachable, challenges and rotations are refused, and nothing else', async () => {
    const away = await startSecondApi(exchange, { REDIS_URL: 'redis://127.0.0.1:1' })
    const user = await createUser(exchange.db, 'limited')
    for (const path of ['/v0/auth/challenge', '/v0/me/api-key/rotate']) {
      const { status, body } = await away.send(user, 'POST', path, {})
      expect([status, body.details.code]).to.deep.equal([503, 'LIMITS_UNAVAILABLE'])
    }
    expect((await away.get(user, '/v0/me')).status).to.equal(200)
    expect((await away.get(user, `/v0/balance/${user.userId}/margin`)).status).to.equal(200)
    await away.stop()
  })
})

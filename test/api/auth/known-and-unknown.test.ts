/** Answers about accounts and keys that exist and about ones that do not: equal, and at the same cost in the database. */
import { expect } from 'chai'
import { Wallet } from 'ethers'
import { after, before, describe, it } from 'mocha'
import pg from 'pg'
import { createApiKey } from '../../../api/auth/credentials.ts'
import {
  createUser,
  type Env,
  type ExchangeFixture,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { ForwardFixture, freshKey } from '../support/forward-fixture.ts'
import { IdentityProvider } from '../support/identity-provider.ts'

interface Asked {
  readonly method?: 'GET' | 'POST'
  readonly path: string
  readonly headers?: Env
  readonly body?: unknown
}

/** Of the moment, or of the number of requests before. */
const VARIABLE = /^(date|x-request-id|ratelimit-(remaining|reset))$/

/** Statements that no request causes at once: the clock, uses of keys, notifications, the live feed, the refresh of what is cached. */
const OF_THE_PROCESS =
  /clock_timestamp|last_used_at|listen|pg_notify|read\.feed_state|from "(markets|shards|leases|projections|calendar_exceptions)"/i

describe('known and unknown accounts and keys', () => {
  let provider: IdentityProvider
  let exchange: ExchangeFixture
  let forward: ForwardFixture
  let alice: User
  let bob: User
  let nextAddress = 1

  before(async () => {
    provider = await IdentityProvider.start()
    exchange = await startExchange({ ...provider.env, RELAY_WAIT_MS: '50' })
    forward = new ForwardFixture(exchange)
    await forward.openLane()
    alice = await createUser(exchange.db, 'asking alice')
    bob = await createUser(exchange.db, 'known bob')
    await exchange.project()
  })
  after(async () => {
    await exchange.stop()
    provider.stop()
  })

  /** The answer without what varies, and the statements that it took. Each request has an address of its own. */
  async function observe({ method = 'GET', path, headers = {}, body }: Asked) {
    const statements: string[] = []
    const { query } = pg.Client.prototype
    pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
      const [first] = args as [string | { readonly text?: string }]
      const text = typeof first === 'string' ? first : (first.text ?? '')
      if (!OF_THE_PROCESS.test(text)) statements.push(text)
      return (query as (...all: unknown[]) => unknown).apply(this, args)
    } as never
    try {
      const request = {
        ...{ method, url: path, remoteAddress: `198.51.100.${nextAddress++ % 250}` },
        headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
      }
      const response = await exchange.api.app.inject(request)
      const { details, ...rest } = response.json()
      const { request_id, received, ...shown } = details ?? {}
      const fixed = Object.entries(response.headers).filter(([name]) => !VARIABLE.test(name))
      return { status: response.statusCode, rest, shown, headers: Object.fromEntries(fixed), statements }
    } finally {
      pg.Client.prototype.query = query
    }
  }

  async function expectEqual(
    known: Asked,
    unknown: Asked,
    { status, code, least = 0 }: { status: number; code: string; least?: number },
  ): Promise<void> {
    const [first, second] = [await observe(known), await observe(unknown)]
    // The request that an error repeats may be longer.
    for (const { headers } of [first, second]) delete headers['content-length']
    expect(first).to.deep.equal(second)
    expect([first.status, first.shown.code]).to.deep.equal([status, code])
    expect(first.statements.length, 'statements of the database').to.be.at.least(least)
  }

  const key = (apiKey: string): Env => ({ authorization: `Key ${apiKey}` })
  const bearer = (token: string): Env => ({ authorization: `Bearer ${token}` })
  const ENDPOINTS: readonly Asked[] = [
    { path: '/v0/me' },
    { path: '/v0/me/limits' },
    { method: 'POST', path: '/v0/auth/challenge', body: { action: 'rotate_api_key' } },
    { method: 'POST', path: '/v0/me/api-key/rotate', body: { challenge_id: 'x', signature: '0x' } },
  ]

  it('when a key was replaced, or differs in one character, it is answered as one that never existed', async () => {
    const user = await createUser(exchange.db, 'replaced')
    await createApiKey(exchange.db, user.userId)
    const near = `${bob.apiKey.slice(0, -4)}${bob.apiKey.endsWith('AAAA') ? 'BBBB' : 'AAAA'}`
    const never = `cb_${'x'.repeat(43)}`
    for (const endpoint of ENDPOINTS) {
      for (const known of [user.apiKey, near]) {
        const [one, other] = [known, never].map((each) => ({ ...endpoint, headers: key(each) }))
        await expectEqual(one as Asked, other as Asked, { status: 401, code: 'API_KEY_UNKNOWN', least: 1 })
      }
    }
  })

  it('when a token is not valid, the answer does not depend on whether its wallet has an account', async () => {
    const now = Math.floor(Date.now() / 1000)
    const stranger = await IdentityProvider.start()
    const newcomer = Wallet.createRandom().address.toLowerCase()
    const tokens = async (wallet_address: string) => [
      ['BEARER_EXPIRED', await provider.token({ wallet_address, exp: now - 60 })],
      ['BEARER_NOT_YET_VALID', await provider.token({ wallet_address, nbf: now + 600 })],
      ['BEARER_INVALID', await provider.token({ wallet_address, aud: 'other' })],
      ['BEARER_INVALID', await stranger.token({ wallet_address })],
    ]
    const unknown = await tokens(newcomer)
    for (const [at, [code, token]] of (await tokens(bob.address)).entries()) {
      for (const endpoint of ENDPOINTS) {
        const other = { ...endpoint, headers: bearer(unknown[at]?.[1] as string) }
        await expectEqual({ ...endpoint, headers: bearer(token as string) }, other, {
          status: 401,
          code: code as string,
        })
      }
    }
    stranger.stop()
    const rows = await exchange.db
      .selectFrom('users')
      .select('user_id')
      .where('address', '=', newcomer)
      .execute()
    expect(rows).to.deep.equal([])
  })

  it("when a challenge is another account's, it is answered as an unknown one", async () => {
    const send = (user: User) =>
      exchange.send(user, 'POST', '/v0/auth/challenge', { action: 'rotate_api_key' })
    const { challenge_id, message } = (await send(bob)).body
    const signature = await bob.wallet.signMessage(message)
    const rotate = (id: string): Asked => ({
      ...{ method: 'POST', path: '/v0/me/api-key/rotate', headers: key(alice.apiKey) },
      body: { challenge_id: id, signature },
    })
    const never = '00000000-0000-4000-8000-000000000000'
    await observe(rotate(never))
    await expectEqual(rotate(challenge_id), rotate(never), {
      status: 404,
      code: 'CHALLENGE_UNKNOWN',
      least: 1,
    })
  })

  it('when another account is named, the answer does not depend on whether it exists', async () => {
    const absent = { userId: 999_999, address: `0x${'77'.repeat(20)}` }
    const headers = key(alice.apiKey)
    const byId = ['/v0/balance/ID/margin', '/v0/positions/by-user/ID', '/v0/fills/by-user/ID']
    for (const path of [...byId, '/v0/orders/by-user/ID', '/v0/users/ID/order-events']) {
      const [known, unknown] = [bob, absent].map(({ userId }) => ({
        ...{ path: path.replace('ID', String(userId)), headers },
      }))
      await expectEqual(known as Asked, unknown as Asked, { status: 403, code: 'NOT_YOURS' })
    }
    const [known, unknown] = [bob, absent].map(({ address }) => ({
      ...{ path: `/v0/account/minimum-margin-nonce?market_id=1&address=${address}`, headers },
    }))
    await expectEqual(known as Asked, unknown as Asked, { status: 403, code: 'NOT_YOURS' })
  })

  it("when a session key or an operation is another account's, it is answered as an unknown one", async () => {
    const session = freshKey()
    const { body } = await forward.relay(bob, await forward.body(bob, session))
    await forward.store(bob, session)
    const headers = key(alice.apiKey)
    const operation = (id: string): Asked => ({ path: `/v0/session-keys/operations/${id}`, headers })
    await expectEqual(operation(body.operation_id), operation(`0x${'12'.repeat(32)}`), {
      status: 404,
      code: 'OPERATION_NOT_FOUND',
      least: 1,
    })
    const revocation = (address: string): Asked => ({
      ...{ method: 'POST', path: '/v0/session-keys/prepare', headers },
      body: { session_public_address: address, operation: 'revoke' },
    })
    const [known, unknown] = [revocation(session.address), revocation(freshKey().address)]
    await expectEqual(known, unknown, { status: 404, code: 'SESSION_KEY_NOT_FOUND', least: 1 })
  })
})

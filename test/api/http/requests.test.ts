import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { after, before, describe, it } from 'mocha'
import { createApiKey } from '../../../api/auth/credentials.ts'
import { descriptionOf } from '../support/description.ts'
import {
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { ENDPOINTS } from './endpoints.ts'

const ISSUER = 'https://identity.example'
const AUDIENCE = 'clearbatch'

describe('requests over HTTP', () => {
  let exchange: ExchangeFixture
  let alice: User
  let keySet: Server
  let keys: Awaited<ReturnType<typeof generateKeyPair>>
  const wallet = `0x${'Ab'.repeat(20)}`

  before(async () => {
    keys = await generateKeyPair('ES256')
    const jwk = { ...(await exportJWK(keys.publicKey)), kid: 'one', alg: 'ES256' }
    keySet = createServer((_request, response) => response.end(JSON.stringify({ keys: [jwk] })))
    await new Promise<void>((resolve) => keySet.listen(0, '127.0.0.1', resolve))
    const { port } = keySet.address() as AddressInfo
    exchange = await startExchange({
      AUTH_JWKS_URL: `http://127.0.0.1:${port}/keys`,
      AUTH_ISSUER: ISSUER,
      AUTH_AUDIENCE: AUDIENCE,
      FAUCET_WAIT_MS: '300',
      READ_AFTER_WAIT_MS: '300',
    })
    alice = await createUser(exchange.db, 'alice')
    await exchange.project()
  })
  after(async () => {
    await exchange.stop()
    keySet.close()
  })

  const token = (claims: Record<string, unknown>) =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: 'ES256', kid: 'one' })
      .setIssuer(ISSUER)
      .setAudience(AUDIENCE)
      .setExpirationTime('5m')
      .sign(keys.privateKey)
  const balance = (authorization: string, userId = alice.userId) =>
    exchange.send(null, 'GET', `/v0/balance/${userId}/margin`, undefined, { authorization })

  describe('credentials', () => {
    const refusals = [
      { what: 'another scheme', authorization: 'Basic abc', code: 'CREDENTIAL_MALFORMED' },
      { what: 'a scheme alone', authorization: 'Key', code: 'CREDENTIAL_MALFORMED' },
      { what: 'an unknown key', authorization: 'Key cb_nobody', code: 'API_KEY_UNKNOWN' },
      {
        what: 'a UUID token',
        authorization: 'Bearer 123e4567-e89b-12d3-a456-426614174000',
        code: 'BEARER_UUID_REFUSED',
      },
      { what: 'a malformed token', authorization: 'Bearer abc.def.ghi', code: 'BEARER_INVALID' },
    ]
    for (const { what, authorization, code } of refusals) {
      it(`when the credential is ${what}, it is rejected with ${code}`, async () => {
        const { status, body } = await balance(authorization)
        expect([status, body.details.code]).to.deep.equal([401, code])
      })
    }

    it('when an API key is created, it stores only the hash of the key', async () => {
      const rows = await exchange.db.selectFrom('api_keys').selectAll().execute()
      expect(JSON.stringify(rows)).to.not.include(alice.apiKey)
      expect(rows[0]?.key_hash).to.have.length(32)
    })

    it('when an API key is replaced, it rejects the old key at once', async () => {
      const user = await createUser(exchange.db, 'rotating')
      expect((await balance(`Key ${user.apiKey}`, user.userId)).status).to.equal(200)
      const next = await createApiKey(exchange.db, user.userId)
      // The notification arrives on another connection, so not within the same microtask.
      for (let tries = 0; tries < 100; tries++) {
        if ((await balance(`Key ${user.apiKey}`, user.userId)).status === 401) break
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
      expect((await balance(`Key ${user.apiKey}`, user.userId)).body.details?.code).to.equal(
        'API_KEY_UNKNOWN',
      )
      expect((await balance(`Key ${next}`, user.userId)).status).to.equal(200)
    })

    it("when an identity token is valid, it authenticates the wallet's user and creates the user at the first login", async () => {
      const known = await token({ wallet_address: alice.wallet.address })
      expect((await balance(`Bearer ${known}`)).status).to.equal(200)

      const fresh = await token({ wallet_address: wallet })
      const answers = await Promise.all([1, 2, 3].map(() => balance(`Bearer ${fresh}`, 0)))
      expect(answers.map(({ status }) => status)).to.deep.equal([400, 400, 400])
      const users = await exchange.db
        .selectFrom('users')
        .selectAll()
        .where('address', '=', wallet.toLowerCase())
        .execute()
      expect(users).to.have.length(1)
      const { status, body } = await balance(`Bearer ${fresh}`, users[0]?.user_id)
      expect([status, body.balance?.total]).to.deep.equal([200, 0])
      await exchange.project()
      expect((await exchange.get(null, `/v0/users/by-eoa/${wallet}`)).body.user_id).to.equal(
        users[0]?.user_id,
      )
    })

    it('when the identity provider is not reachable, it answers 503', async () => {
      const other = await startExchange({
        AUTH_JWKS_URL: 'http://127.0.0.1:1/',
        AUTH_ISSUER: ISSUER,
        AUTH_AUDIENCE: AUDIENCE,
      })
      const bearer = { authorization: `Bearer ${await token({ wallet_address: wallet })}` }
      const { status, body } = await other.send(null, 'GET', '/v0/balance/1/margin', undefined, bearer)
      await other.stop()
      expect([status, body.details.code]).to.deep.equal([503, 'IDENTITY_PROVIDER_UNAVAILABLE'])
    })

    it('when no identity provider is configured, it rejects identity tokens', async () => {
      const other = await startExchange()
      const { body } = await other.send(null, 'GET', '/v0/balance/1/margin', undefined, {
        authorization: 'Bearer a.b.c',
      })
      await other.stop()
      expect(body.details.code).to.equal('BEARER_NOT_CONFIGURED')
    })
  })

  describe('bodies', () => {
    const post = (text: string, headers = {}) => exchange.send(alice, 'POST', '/v0/orders', text, headers)
    const withPrice = (price: string): string => {
      const { body } = signedBody(alice)
      return JSON.stringify({ ...body, price: 'PRICE' }).replace('"PRICE"', price)
    }

    it('when a double would round a number, it rejects the number by its source text', async () => {
      for (const price of [
        '100.00000000000000001',
        '9007199254740993',
        '1e400',
        '1e-400',
        '0.1000000000000000055511151231',
      ]) {
        const { status, body } = await post(withPrice(price))
        expect([status, body.details.code], price).to.deep.equal([400, 'PRECISION_LOST'])
        expect(body.details).to.include({ field: 'price', received: price })
      }
    })

    it('when one number is written in several forms, it accepts all of them as equal', async () => {
      for (const price of ['100', '100.0', '1e2', '1E+2', '100.000', '"100.0"']) {
        const { body: signed } = signedBody(alice, { quantity: '0.01' })
        const text = JSON.stringify({ ...signed, price: 'PRICE' }).replace('"PRICE"', price)
        expect((await post(text)).status, price).to.equal(200)
      }
    })

    it('when a number is 0.1, it is exactly one tenth', async () => {
      const { body } = signedBody(alice, { price: '99.1', quantity: '0.011' })
      const answer = await post(JSON.stringify({ ...body, price: 99.1, quantity: 0.011 }))
      expect(answer.body.order).to.include({
        price_e18_raw: '99100000000000000000',
        quantity_e18_raw: '11000000000000000',
      })
    })

    const broken = [
      { what: 'not JSON', text: '{"market_id":', code: 'INVALID_JSON' },
      { what: 'an array', text: '[]', code: 'INVALID_FIELD' },
      { what: 'empty', text: '', code: 'MISSING_FIELD' },
      { what: 'an object with __proto__', text: '{"__proto__":{"market_id":1}}', code: 'UNKNOWN_FIELD' },
      { what: 'too large', text: `{"salt":"${'1'.repeat(200_000)}"}`, code: 'BODY_TOO_LARGE' },
    ]
    for (const { what, text, code } of broken) {
      it(`when the body is ${what}, it is rejected with ${code}`, async () => {
        const { status, body } = await post(text)
        expect([status, body.details.code], JSON.stringify(body)).to.deep.equal([400, code])
      })
    }

    it('when the content type is not JSON, it rejects the request', async () => {
      const { status, body } = await post('market_id=1', {
        'content-type': 'application/x-www-form-urlencoded',
      })
      expect([status, body.details.code]).to.deep.equal([400, 'UNSUPPORTED_CONTENT_TYPE'])
    })

    it('when the framework cannot read a request, it answers with an error of the catalogue', async () => {
      const { status, body } = await exchange.send(alice, 'GET', '/v0/orders/%E0%A4%A')
      expect([status, body.details.code], JSON.stringify(body)).to.deep.equal([400, 'MALFORMED_REQUEST'])
    })

    it('when the path does not exist, it answers 404', async () => {
      const { status, body } = await exchange.send(alice, 'POST', '/v0/nothing', {})
      expect([status, body.details.code]).to.deep.equal([404, 'ROUTE_NOT_FOUND'])
    })
  })

  describe('POST /v0/faucet', () => {
    /** Acts as the keeper: reads the request and stores the hash of the transaction. */
    async function relay(set: { status: 'SIGNED' | 'FAILED'; tx_hash: string | null }): Promise<unknown> {
      for (;;) {
        const open = exchange.db.selectFrom('faucet_requests').selectAll().where('status', '=', 'REQUESTED')
        const request = await open.executeTakeFirst()
        if (request !== undefined) {
          await exchange.db
            .updateTable('faucet_requests')
            .set(set)
            .where('request_id', '=', request.request_id)
            .execute()
          return request.payload
        }
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
    }

    it('when the keeper has signed the payout, it answers with the transaction hash', async () => {
      const [answer, payload] = await Promise.all([
        exchange.send(alice, 'POST', '/v0/faucet', {}),
        relay({ status: 'SIGNED', tx_hash: '0xfeed' }),
      ])
      expect(answer.status, JSON.stringify(answer.body)).to.equal(200)
      expect(answer.body).to.include({ tx_hash: '0xfeed', wallet: alice.address, status: 'SIGNED' })
      expect(payload).to.deep.equal({ wallet: alice.address })
    })

    it('when the payout fails, it answers 503; when no keeper processes the request in time, it answers 408', async () => {
      const [failed] = await Promise.all([
        exchange.send(alice, 'POST', '/v0/faucet'),
        relay({ status: 'FAILED', tx_hash: null }),
      ])
      expect([failed.status, failed.body.details.code]).to.deep.equal([503, 'FAUCET_FAILED'])
      const late = await exchange.send(alice, 'POST', '/v0/faucet')
      expect([late.status, late.body.details.code]).to.deep.equal([408, 'FAUCET_PENDING'])
      expect(late.body.details.outcome).to.equal('unknown')
    })

    it('when the credential is missing, the body is not empty, or the chain has no faucet, it rejects the request', async () => {
      expect((await exchange.send(null, 'POST', '/v0/faucet', {})).status).to.equal(401)
      expect((await exchange.send(alice, 'POST', '/v0/faucet', { wallet: '0x' })).body.details.code).to.equal(
        'UNKNOWN_FIELD',
      )
      const other = await startExchange({ FAUCET: 'off' })
      const user = await createUser(other.db, 'alice')
      const { status, body } = await other.send(user, 'POST', '/v0/faucet', {})
      await other.stop()
      expect([status, body.details.code]).to.deep.equal([404, 'FAUCET_NOT_AVAILABLE'])
    })
  })

  describe('limits', () => {
    it('when an account exceeds its order limit, it rejects its orders, but not its cancels or other accounts', async () => {
      const other = await startExchange({
        RATE_LIMIT_ORDERS: '2',
        RATE_LIMIT_READS: '1000',
        RATE_LIMIT_WINDOW_SECONDS: '60',
      })
      const [user, neighbour] = [await createUser(other.db, 'alice'), await createUser(other.db, 'bob')]
      const first = await other.place(user, { quantity: '0.01' })
      expect(first.headers).to.include({ 'ratelimit-limit': '120', 'ratelimit-remaining': '119' })
      expect(Number(first.headers['ratelimit-reset'])).to.be.within(1, 60)
      await Promise.all(Array.from({ length: 119 }, () => other.send(user, 'POST', '/v0/orders', {})))

      const over = await other.place(user, { quantity: '0.01' })
      expect([over.status, over.body.details.code]).to.deep.equal([429, 'RATE_LIMITED'])
      expect(Number(over.headers['retry-after'])).to.be.within(1, 60)
      expect(over.body.details).to.include({ scope: 'orders', retryable: true, outcome: 'not_read' })
      expect((await other.cancel(user, first.body.order.order_hash)).status).to.equal(200)
      expect((await other.place(neighbour, { quantity: '0.01' })).status).to.equal(200)
      await other.stop()
    })

    it('when an address exceeds its limit, it rejects requests of all callers from it', async () => {
      const other = await startExchange({ RATE_LIMIT_ADDRESS: '1', RATE_LIMIT_WINDOW_SECONDS: '60' })
      const statuses: number[] = []
      for (let at = 0; at < 62; at++) statuses.push((await other.get(null, '/v0/time')).status)
      expect((await other.get(null, '/health/live')).status).to.equal(200)
      await other.stop()
      expect(statuses).to.deep.equal([...Array(60).fill(200), 429, 429])
    })
  })

  describe('the OpenAPI description', () => {
    it('when it is fetched, it is OpenAPI 3.1.0 of version 0 and lists every endpoint with its schemas', async () => {
      const body = await descriptionOf(exchange)
      expect(body).to.include({ openapi: '3.1.0' })
      expect(body.info.version).to.equal('0')
      expect(Object.keys(body.paths).sort()).to.deep.equal(ENDPOINTS)
      const place = body.paths['/v0/orders']?.post
      expect(place.security).to.deep.equal([{ apiKey: [] }, { bearer: [] }])
      const schema = place.requestBody.content['application/json'].schema
      expect(schema.additionalProperties).to.equal(false)
      expect(schema.required).to.include.members(['market_id', 'side', 'salt', 'signature'])
      expect(body.paths['/v0/markets']?.get.security).to.deep.equal([])
    })

    it('when /docs is opened, it serves a page that may run its own scripts only', async () => {
      const page = await exchange.get(null, '/docs/')
      expect(page.status).to.equal(200)
      expect(page.headers['content-type']).to.match(/html/)
      expect(page.headers['content-security-policy']).to.include("script-src 'self'")
      expect((await exchange.get(null, '/v0/time')).headers['content-security-policy']).to.equal(
        "default-src 'none';frame-ancestors 'none'",
      )
    })

    it('when an answer is not a document, it has the security headers that browsers apply to it, and a document has all', async () => {
      const ofAll = ['strict-transport-security', 'x-content-type-options', 'cross-origin-resource-policy']
      const ofDocuments = ['cross-origin-opener-policy', 'x-frame-options', 'referrer-policy']
      const page = await exchange.get(null, '/docs/')
      expect(page.headers).to.include.keys([...ofAll, ...ofDocuments])
      const read = await exchange.get(null, '/v0/time')
      expect(read.headers).to.include.keys(ofAll)
      expect(read.headers).not.to.have.any.keys(ofDocuments)
    })
  })

  describe('probes', () => {
    it('when a load balancer reads the public probes, they report no details', async () => {
      for (const path of ['/health/live', '/health/ready']) {
        const { status, body } = await exchange.get(null, path)
        expect([status, body]).to.deep.equal([200, { status: 'ok' }])
      }
    })

    it('when metrics are read on the public port, they do not exist', async () => {
      const { status, body } = await exchange.get(null, '/metrics')
      expect([status, body.details.code]).to.deep.equal([404, 'ROUTE_NOT_FOUND'])
    })

    it('when the operator reads the internal port, it reports readiness by check, and metrics', async () => {
      const ready = await fetch(`http://127.0.0.1:${exchange.api.internalPort}/health/ready`)
      expect([ready.status, await ready.json()]).to.deep.equal([
        200,
        { status: 'ok', checks: { accepting: true, database: true, markets: true, notifications: true } },
      ])
      const metrics = await exchange.metrics()
      expect(metrics).to.match(/api_commands_total\{kind="place",result="accepted"\} [1-9]/)
      expect(metrics).to.match(/api_request_duration_seconds_bucket\{.*route="\/v0\/orders"/)
    })
  })
})

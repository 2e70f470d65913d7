import { expect } from 'chai'
import { generateKeyPair, UnsecuredJWT } from 'jose'
import { after, before, describe, it } from 'mocha'
import { type Bearer, createBearer } from '../../../api/auth/bearer.ts'
import { createLogIn } from '../../../api/auth/log-in.ts'
import { createEngineCalls } from '../../../api/engine-reply.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'
import { AUDIENCE, IdentityProvider, ISSUER } from '../support/identity-provider.ts'

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'accepted',
    (error: { code: string }) => error.code,
  )

const seconds = (from: number): number => Math.floor(Date.now() / 1000) + from

describe('identity tokens', () => {
  let provider: IdentityProvider
  let exchange: ExchangeFixture
  let alice: User
  let wallet: { wallet_address: string }

  before(async () => {
    provider = await IdentityProvider.start()
    exchange = await startExchange(provider.env)
    alice = await createUser(exchange.db, 'alice')
    wallet = { wallet_address: alice.wallet.address }
  })
  after(async () => {
    await exchange.stop()
    provider.stop()
  })

  const ask = async (token: string) => {
    const { status, body } = await exchange.send(null, 'GET', '/v0/me', undefined, {
      authorization: `Bearer ${token}`,
    })
    const { code, field } = body.details ?? {}
    return { status, code, field }
  }
  const bearer = (url = provider.url): Bearer =>
    createBearer(
      createLogIn(
        exchange.db,
        createEngineCalls(
          exchange.engine,
          { error() {} },
          { commandTimeoutMs: 5_000 },
          { current: 0, traceId: undefined, span: undefined },
          null,
        ),
      ),
      { now: Date.now } as never,
      {
        ...{ jwksUrl: url, issuer: ISSUER, audience: AUDIENCE, walletClaim: 'wallet_address' },
      },
    )

  it('when a token is valid, or differs from our clock by less than five seconds, it is accepted', async () => {
    const times = [{}, { exp: seconds(-3) }, { nbf: seconds(3) }, { iat: seconds(3) }]
    for (const claims of times) {
      const { status } = await ask(await provider.token({ ...wallet, ...claims }))
      expect(status, JSON.stringify(claims)).to.equal(200)
    }
  })

  const refused: readonly [string, Record<string, unknown>, string, string][] = [
    ['has expired', { exp: seconds(-60) }, 'BEARER_EXPIRED', 'exp'],
    ['has no expiry', { exp: undefined }, 'BEARER_INVALID', 'exp'],
    ['is not valid yet', { nbf: seconds(600) }, 'BEARER_NOT_YET_VALID', 'nbf'],
    ['is from the future', { iat: seconds(600) }, 'BEARER_NOT_YET_VALID', 'iat'],
    ['is of another issuer', { iss: 'https://other.example' }, 'BEARER_INVALID', 'iss'],
    ['is for another audience', { aud: 'other' }, 'BEARER_INVALID', 'aud'],
    ['has no wallet', { wallet_address: undefined }, 'BEARER_INVALID', 'wallet_address'],
    ['has a wallet that is no address', { wallet_address: '0x12' }, 'BEARER_INVALID', 'wallet_address'],
  ]
  for (const [what, claims, code, field] of refused) {
    it(`when a token ${what}, it is refused with ${code} and the field ${field}`, async () => {
      expect(await ask(await provider.token({ ...wallet, ...claims }))).to.deep.equal({
        ...{ status: 401, code, field },
      })
    })
  }

  it('when a token names no key, or an unknown one, it is refused with BEARER_KEY_UNKNOWN', async () => {
    const { privateKey: key } = await generateKeyPair('ES256')
    for (const kid of [null, '', 'two']) {
      const answer = await ask(await provider.token(wallet, { kid, key }))
      expect(answer).to.deep.equal({ status: 401, code: 'BEARER_KEY_UNKNOWN', field: 'kid' })
    }
  })

  it('when a token is signed by another key of the same name, it is refused', async () => {
    const { privateKey: key } = await generateKeyPair('ES256')
    expect((await ask(await provider.token(wallet, { key }))).code).to.equal('BEARER_INVALID')
  })

  it('when a token has no signature, or the public key is its shared secret, it is refused with BEARER_ALGORITHM', async () => {
    const unsecured = new UnsecuredJWT({ ...wallet, iss: ISSUER, aud: AUDIENCE, exp: seconds(300) }).encode()
    const jwk = new TextEncoder().encode(JSON.stringify(provider.publicKey()))
    const x = Buffer.from(provider.publicKey().x as string, 'base64url')
    const forged = [unsecured, `${unsecured}AAAA`]
    for (const key of [jwk, x]) forged.push(await provider.token(wallet, { alg: 'HS256', key }))
    for (const token of forged)
      expect(await ask(token)).to.deep.equal({ status: 401, code: 'BEARER_ALGORITHM', field: 'alg' })
  })

  it('when many tokens name invented keys, the provider is asked once at most', async () => {
    const { privateKey: key } = await generateKeyPair('ES256')
    const before = provider.requests
    const tokens = await Promise.all(
      Array.from({ length: 40 }, (_, n) => provider.token(wallet, { kid: `k${n}`, key })),
    )
    for (const token of tokens) expect((await ask(token)).code).to.equal('BEARER_KEY_UNKNOWN')
    expect(provider.requests - before).to.be.at.most(1)
  })

  it('when the provider fails, it is asked once within two seconds, however many tokens arrive', async () => {
    const down = await IdentityProvider.start()
    down.isDown = true
    const verifier = bearer(down.url)
    const tokens = await Promise.all(Array.from({ length: 20 }, (_, n) => down.token({ ...wallet, n })))
    for (const token of tokens)
      expect(await codeOf(verifier.verify(token))).to.equal('IDENTITY_PROVIDER_UNAVAILABLE')
    expect(down.requests).to.equal(1)
    down.stop()
  })

  it('when the provider replaces its key, tokens of the new key are accepted after 30 s, and those of the old key no longer', async () => {
    const rotating = await IdentityProvider.start()
    const verifier = bearer(rotating.url)
    const old = await rotating.token(wallet)
    expect((await verifier.verify(old)).userId).to.equal(alice.userId)
    await rotating.addKey('two')
    rotating.keepOnly('two')
    const fresh = await rotating.token(wallet, { kid: 'two' })
    expect(await codeOf(verifier.verify(fresh))).to.equal('BEARER_KEY_UNKNOWN')
    const realNow = Date.now
    Date.now = () => realNow() + 31_000
    try {
      expect((await verifier.verify(fresh)).userId).to.equal(alice.userId)
      expect(await codeOf(verifier.verify(old))).to.equal('BEARER_KEY_UNKNOWN')
    } finally {
      Date.now = realNow
      rotating.stop()
    }
    expect(rotating.requests).to.equal(2)
  })

  it('when a token was verified a moment ago, it is known until it expires and is not verified again', async () => {
    const verifier = bearer()
    const token = await provider.token({ ...wallet, exp: seconds(1) })
    expect(verifier.known(token)).to.equal(undefined)
    const caller = await verifier.verify(token)
    expect(caller).to.include({ scope: 'trade', credential: 'identity_token' })
    expect(verifier.known(token)).to.equal(caller)
    await new Promise((resolve) => setTimeout(resolve, 1_100))
    expect(verifier.known(token)).to.equal(undefined)
  })
})

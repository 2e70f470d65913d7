/** Rotations whose connection to the database is lost: one key is valid, and the owner has a way to a known one. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { freshDatabase } from '../../support/postgres.ts'
import { type CutProxy, startProxy } from '../../support/proxy.ts'
import {
  type Answer,
  codeOf,
  createUser,
  type Env,
  type ExchangeFixture,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { IdentityProvider } from '../support/identity-provider.ts'

/** As Postgres receives them. */
const [BEGIN, COMMIT] = ['begin\0', 'commit\0']

describe('a rotation that loses the database', () => {
  let provider: IdentityProvider
  let proxy: CutProxy
  let exchange: ExchangeFixture
  let users = 0

  before(async () => {
    provider = await IdentityProvider.start()
    const url = await freshDatabase()
    proxy = await startProxy(url)
    exchange = await startExchange({ ...provider.env, DATABASE_URL: proxy.url }, url)
  })
  after(async () => {
    await exchange.stop()
    await proxy.cut()
    provider.stop()
  })

  const newUser = (): Promise<User> => createUser(exchange.db, `losing ${++users}`)
  const bearerOf = async ({ address }: User): Promise<Env> => ({
    authorization: `Bearer ${await provider.token({ wallet_address: address })}`,
  })
  const signed = async (user: User, headers: Env) => {
    const body = { action: 'rotate_api_key' }
    const { challenge_id, message } = (await exchange.send(user, 'POST', '/v0/auth/challenge', body, headers))
      .body
    return { challenge_id, signature: await user.wallet.signMessage(message) }
  }
  const rotate = (user: User, body: unknown, headers: Env): Promise<Answer> =>
    exchange.send(user, 'POST', '/v0/me/api-key/rotate', body, headers)
  const hashOf = async ({ userId }: User): Promise<string | undefined> => {
    const query = exchange.db.selectFrom('api_keys').select('key_hash').where('user_id', '=', userId)
    return (await query.executeTakeFirst())?.key_hash.toString('hex')
  }
  /** The api listens on a connection of its own, which may come a moment after the answer. */
  async function ends({ apiKey }: User): Promise<boolean> {
    for (let tries = 0; tries < 100; tries++) {
      const { status } = await exchange.send(null, 'GET', '/v0/me', undefined, {
        authorization: `Key ${apiKey}`,
      })
      if (status === 401) return true
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    return false
  }
  const works = async (user: User): Promise<boolean> => (await exchange.get(user, '/v0/me')).status === 200

  it('when it is lost before the commit arrives, the outcome is unknown, the old key is valid, and the same request succeeds', async () => {
    const user = await newUser()
    const headers = await bearerOf(user)
    const request = await signed(user, headers)
    const before = await hashOf(user)
    proxy.cutAt(COMMIT, 'before')
    const lost = await rotate(user, request, headers)
    expect(codeOf(lost)).to.deep.equal([408, 'OUTCOME_UNKNOWN'])
    expect(lost.body.details).to.include({ outcome: 'unknown', retryable: true })
    expect(JSON.stringify(lost)).to.not.include('cb_')
    expect(await hashOf(user)).to.equal(before)
    expect(await works(user)).to.equal(true)
    const again = await rotate(user, request, headers)
    expect(again.status, JSON.stringify(again.body)).to.equal(200)
    expect(await works({ ...user, apiKey: again.body.api_key })).to.equal(true)
    expect(await ends(user)).to.equal(true)
  })

  it('when it is lost after the commit, the outcome is unknown, the old key has ended, and another challenge replaces the lost key', async () => {
    const user = await newUser()
    const headers = await bearerOf(user)
    const request = await signed(user, headers)
    const before = await hashOf(user)
    expect(await works(user)).to.equal(true)
    proxy.cutAt(COMMIT, 'after')
    expect(codeOf(await rotate(user, request, headers))).to.deep.equal([408, 'OUTCOME_UNKNOWN'])
    const lost = await hashOf(user)
    expect(lost).to.be.a('string').and.not.equal(before)
    expect(await ends(user)).to.equal(true)
    const again = await rotate(user, request, headers)
    expect(codeOf(again)).to.deep.equal([409, 'CHALLENGE_USED'])
    expect(again.body.message).to.match(/request another challenge with an identity token/)
    const { status, body } = await rotate(user, await signed(user, headers), headers)
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(await works({ ...user, apiKey: body.api_key })).to.equal(true)
    expect(await hashOf(user)).to.not.equal(lost)
  })

  it('when it is lost before anything is stored, the outcome is unknown, nothing has changed, and the same request succeeds', async () => {
    for (const when of ['before', 'after'] as const) {
      const user = await newUser()
      const headers = await bearerOf(user)
      const request = await signed(user, headers)
      const before = await hashOf(user)
      proxy.cutAt(BEGIN, when)
      const lost = await rotate(user, request, headers)
      expect(codeOf(lost), when).to.deep.equal([503, 'DATABASE_UNAVAILABLE'])
      expect(lost.body.details.outcome).to.equal('unknown')
      expect(await hashOf(user)).to.equal(before)
      expect((await rotate(user, request, headers)).status).to.equal(200)
    }
  })
})

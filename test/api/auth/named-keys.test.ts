import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { Wallet } from 'ethers'
import { after, before, describe, it } from 'mocha'
import { createApiKey } from '../../../api/auth/credentials.ts'
import { LiveClient } from '../../support/live-client.ts'
import { waitFor } from '../../support/patience.ts'
import {
  type Answer,
  codeOf,
  createUser,
  type Env,
  type ExchangeFixture,
  startExchange,
  startSecondApi,
  type User,
} from '../support/exchange-fixture.ts'
import { IdentityProvider } from '../support/identity-provider.ts'

const KEYS = '/v0/me/api-keys'
const ALL = { scope: 'trade', allowed_addresses: null } as const

describe('named API keys', function () {
  this.timeout(60_000)
  let provider: IdentityProvider
  let env: Env
  let exchange: ExchangeFixture
  let second: ExchangeFixture
  let base: string
  let users = 0

  before(async () => {
    provider = await IdentityProvider.start()
    env = provider.env
    exchange = await startExchange(env)
    second = await startSecondApi(exchange, { ...env, LIVE_HEARTBEAT_MS: '400' })
    await second.api.app.listen({ port: 0, host: '127.0.0.1' })
    base = `http://127.0.0.1:${(second.api.app.server.address() as AddressInfo).port}`
  })
  after(async () => {
    await second.stop()
    await exchange.stop()
    provider.stop()
  })

  const newUser = (): Promise<User> => createUser(exchange.db, `named ${++users}`)
  const challengeOf = async (user: User, action = 'create_api_key') =>
    (await exchange.send(user, 'POST', '/v0/auth/challenge', { action })).body
  const signed = async (user: User, wallet: { signMessage(text: string): Promise<string> } = user.wallet) => {
    const { challenge_id, message } = await challengeOf(user)
    return { challenge_id, signature: await wallet.signMessage(message) }
  }
  const create = async (user: User, body: Record<string, unknown>): Promise<Answer> =>
    exchange.send(user, 'POST', KEYS, { ...(await signed(user)), ...body })
  const keyOf = async (user: User, body: Record<string, unknown>): Promise<User> => {
    const answer = await create(user, body)
    expect(answer.status, JSON.stringify(answer.body)).to.equal(200)
    return { ...user, apiKey: answer.body.api_key }
  }
  const stored = (user: User, name: string) =>
    createApiKey(exchange.db, user.userId, ALL, Date.now(), name).then((apiKey) => ({ ...user, apiKey }))
  const revoke = (user: User, name: string): Promise<Answer> =>
    exchange.send(user, 'DELETE', `${KEYS}/${name}`)
  const namesOf = async (user: User): Promise<string[]> =>
    (await exchange.get(user, KEYS)).body.api_keys.map(({ name }: { name: string }) => name)
  const statusOf = async (api: ExchangeFixture, user: User) => (await api.get(user, '/v0/me')).status

  it('when a key is created, it has the name, scope and addresses of the request, and the other keys keep working', async () => {
    const alice = await newUser()
    const addresses = ['127.0.0.1', '2001:db8::/48']
    const answer = await create(alice, { name: 'reader', scope: 'read', allowed_addresses: addresses })
    expect(answer.status, JSON.stringify(answer.body)).to.equal(200)
    expect(answer.headers['cache-control']).to.equal('no-store')
    const { api_key: apiKey, ...facts } = answer.body
    expect(facts).to.deep.include({ name: 'reader', scope: 'read', allowed_addresses: addresses })
    const reader = { ...alice, apiKey }
    const me = await exchange.get(reader, '/v0/me')
    expect(me.body).to.deep.include({ scope: 'read', api_key_name: 'reader' })
    expect(me.body.api_key).to.include({ scope: 'trade', prefix: alice.apiKey.slice(0, 10) })
    expect((await exchange.get(alice, '/v0/me')).body).to.include({ scope: 'trade', api_key_name: 'default' })
    const { api_keys } = (await exchange.get(reader, KEYS)).body
    expect(api_keys).to.have.length(2)
    const { user_id: _, ...listed } = facts
    expect(api_keys[1]).to.deep.equal({ ...listed, last_used_at: null })
    expect(JSON.stringify(api_keys)).to.not.include(apiKey.slice(10))
    const rows = await exchange.db
      .selectFrom('api_keys')
      .selectAll()
      .where('user_id', '=', alice.userId)
      .execute()
    expect(JSON.stringify(rows)).to.not.include(apiKey.slice(10))
  })

  it('when the single key is rotated, only the key named default is replaced', async () => {
    const alice = await newUser()
    const bot = await keyOf(alice, { name: 'bot' })
    const { challenge_id, message } = await challengeOf(alice, 'rotate_api_key')
    const signature = await alice.wallet.signMessage(message)
    const body = { challenge_id, signature, scope: 'read' }
    const rotated = await exchange.send(alice, 'POST', '/v0/me/api-key/rotate', body)
    expect(rotated.status).to.equal(200)
    expect(await statusOf(exchange, alice)).to.equal(401)
    expect((await exchange.get(bot, '/v0/me')).body).to.include({ scope: 'trade', api_key_name: 'bot' })
    expect(await namesOf(bot)).to.deep.equal(['bot', 'default'])
  })

  it('when a key is revoked, every process refuses it, and only the named key ends', async () => {
    const alice = await newUser()
    const bot = await keyOf(alice, { name: 'bot' })
    // Twice, so that the key is in the cache of both processes.
    for (const api of [exchange, second, exchange, second]) expect(await statusOf(api, bot)).to.equal(200)
    const { status, body } = await revoke(alice, 'bot')
    expect([status, body]).to.deep.equal([200, { success: true }])
    expect(await statusOf(exchange, bot), 'the process that has answered').to.equal(401)
    const elsewhere = await waitFor(
      () => statusOf(second, bot),
      (is) => is === 401,
      { budgetMs: 2_000, everyMs: 5 },
    )
    expect(elsewhere).to.equal(401)
    for (const api of [exchange, second]) expect(await statusOf(api, alice)).to.equal(200)
    expect(await namesOf(alice)).to.deep.equal(['default'])
  })

  it('when a key revokes itself, it is answered, and is refused at the next request', async () => {
    const bot = await keyOf(await newUser(), { name: 'bot' })
    expect((await revoke(bot, 'bot')).status).to.equal(200)
    expect(await statusOf(exchange, bot)).to.equal(401)
  })

  it('when the key named default is revoked, the account has none, and its name can be created again', async () => {
    const alice = await newUser()
    const bot = await keyOf(alice, { name: 'bot' })
    expect((await revoke(bot, 'default')).status).to.equal(200)
    expect((await exchange.get(bot, '/v0/me')).body.api_key).to.equal(null)
    const again = await keyOf(bot, { name: 'default' })
    expect(await statusOf(exchange, again)).to.equal(200)
  })

  it('when the name is unknown, or the key is one of another account, revocation is 404 and changes nothing', async () => {
    const [alice, bob] = [await newUser(), await newUser()]
    await stored(bob, 'bot')
    for (const name of ['bot', 'never'])
      expect(codeOf(await revoke(alice, name)), name).to.deep.equal([404, 'API_KEY_NOT_FOUND'])
    expect((await revoke(alice, 'never')).body.details).to.include({ field: 'name', received: 'never' })
    expect(await namesOf(bob)).to.deep.equal(['bot', 'default'])
  })

  it('when a read key creates or revokes keys, it is refused', async () => {
    const alice = await newUser()
    const reader = await keyOf(alice, { name: 'reader', scope: 'read' })
    expect(codeOf(await revoke(reader, 'default'))).to.deep.equal([403, 'READ_ONLY_KEY'])
    expect(codeOf(await exchange.send(reader, 'POST', KEYS, {}))).to.deep.equal([403, 'READ_ONLY_KEY'])
  })

  it('when the name is taken, it is refused, and the same challenge creates another name', async () => {
    const alice = await newUser()
    const body = { ...(await signed(alice)), name: 'default' }
    const refused = await exchange.send(alice, 'POST', KEYS, body)
    expect(codeOf(refused)).to.deep.equal([409, 'API_KEY_NAME_TAKEN'])
    expect(refused.body.details).to.include({ field: 'name', received: 'default', outcome: 'not_placed' })
    expect((await exchange.send(alice, 'POST', KEYS, { ...body, name: 'other' })).status).to.equal(200)
    expect(await statusOf(exchange, alice)).to.equal(200)
  })

  it('when an account has twenty keys, a further one is refused until one is revoked', async () => {
    const alice = await newUser()
    for (let n = 1; n < 20; n++) await stored(alice, `key-${n}`)
    expect(await namesOf(alice)).to.have.length(20)
    const refused = await create(alice, { name: 'one-more' })
    expect(codeOf(refused)).to.deep.equal([409, 'API_KEY_LIMIT'])
    expect(refused.body.details).to.include({ field: 'name', received: 'one-more' })
    expect((await revoke(alice, 'key-7')).status).to.equal(200)
    expect((await create(alice, { name: 'one-more' })).status).to.equal(200)
    expect(await namesOf(alice)).to.have.length(20)
  })

  it('when creations run at once for the last place or with one challenge, exactly one succeeds', async () => {
    const alice = await newUser()
    for (let n = 1; n < 19; n++) await stored(alice, `key-${n}`)
    const bodies = await Promise.all([signed(alice), signed(alice)])
    const answers = await Promise.all(
      bodies.map((body, n) => exchange.send(alice, 'POST', KEYS, { ...body, name: `last-${n}` })),
    )
    expect(answers.filter(({ status }) => status === 200)).to.have.length(1)
    expect(await namesOf(alice)).to.have.length(20)
    const bob = await newUser()
    const body = await signed(bob)
    const names = ['a', 'b', 'c']
    const raced = await Promise.all(names.map((name) => exchange.send(bob, 'POST', KEYS, { ...body, name })))
    expect(raced.map((one) => one.body.details?.code ?? one.status).sort()).to.deep.equal([
      200,
      'CHALLENGE_USED',
      'CHALLENGE_USED',
    ])
    expect(await namesOf(bob)).to.have.length(2)
  })

  it('when the challenge is for a rotation, or another wallet signs, no key is created', async () => {
    const alice = await newUser()
    const { challenge_id, message } = await challengeOf(alice, 'rotate_api_key')
    const rotation = { challenge_id, signature: await alice.wallet.signMessage(message), name: 'bot' }
    expect(codeOf(await exchange.send(alice, 'POST', KEYS, rotation))).to.deep.equal([
      404,
      'CHALLENGE_UNKNOWN',
    ])
    const forged = { ...(await signed(alice, Wallet.createRandom())), name: 'bot' }
    expect(codeOf(await exchange.send(alice, 'POST', KEYS, forged))).to.deep.equal([
      400,
      'WALLET_SIGNATURE_MISMATCH',
    ])
    expect(await namesOf(alice)).to.deep.equal(['default'])
  })

  it('when the request is wrong, it names the field and what is valid', async () => {
    const alice = await newUser()
    const body = { ...(await signed(alice)), name: 'bot' }
    const wrong = [
      ...['', 'Bot', '-bot', 'bot key', 'ключ', 'x'.repeat(33), 7, null, ['bot']].map((name) => [
        { name },
        'name',
      ]),
      [{ scope: 'admin' }, 'scope'],
      [{ allowed_addresses: ['10.0.0.0/33'] }, 'allowed_addresses'],
      [{ expires_at: 1 }, 'expires_at'],
    ] as const
    for (const [change, field] of wrong) {
      const { status, body: answer } = await exchange.send(alice, 'POST', KEYS, {
        ...body,
        ...(change as object),
      })
      expect([status, answer.details.field], JSON.stringify(change)).to.deep.equal([400, field])
    }
    const { details } = (await revoke(alice, 'Bot%20key')).body
    expect(details).to.include({ code: 'INVALID_FIELD', field: 'name', received: 'Bot key' })
    const leaked = await revoke(alice, alice.apiKey)
    expect(leaked.status).to.equal(400)
    expect(JSON.stringify(leaked.body)).to.not.include(alice.apiKey.slice(10))
    expect(await namesOf(alice)).to.deep.equal(['default'])
  })

  it('when the shared counters are unreachable, a key is still revoked', async () => {
    const away = await startSecondApi(exchange, { ...env, REDIS_URL: 'redis://127.0.0.1:1' })
    const alice = await newUser()
    const bot = await stored(alice, 'bot')
    expect((await away.send(alice, 'DELETE', `${KEYS}/bot`)).status).to.equal(200)
    expect(await statusOf(away, bot)).to.equal(401)
    await away.stop()
  })

  it('when a page of another origin revokes a key, its preflight allows the method', async () => {
    const { headers } = await exchange.api.app.inject({
      method: 'OPTIONS',
      url: `${KEYS}/bot`,
      headers: { origin: 'https://app.example', 'access-control-request-method': 'DELETE' },
    })
    expect(headers['access-control-allow-methods']).to.include('DELETE')
  })

  describe('live connections', () => {
    const connect = (user: User) =>
      LiveClient.open(base, { headers: { authorization: `Key ${user.apiKey}` } })

    it('when a key is revoked in another process, its connections are closed, and those of other keys stay', async () => {
      const alice = await newUser()
      const bot = await stored(alice, 'bot')
      const [own, other] = [await connect(bot), await connect(alice)]
      await revoke(alice, 'bot')
      expect(await own.closed).to.deep.equal({ code: 4401, reason: 'the API key was revoked' })
      expect((await other.call('ping')).type).to.equal('result')
      await other.close()
    })

    it('when a revoked key has armed switches, they fire although another key is connected with a switch', async () => {
      const alice = await newUser()
      await exchange.project()
      const bot = await stored(alice, 'bot')
      const [own, other] = [await connect(bot), await connect(alice)]
      for (const client of [own, other]) {
        const { data } = await client.call('cancel_on_disconnect', { grace_seconds: 5 })
        expect(data).to.deep.equal({ armed: true, grace_seconds: 5 })
      }
      const { body: placed } = await exchange.place(alice)
      const statusOfOrder = async () => {
        const { order_id } = placed.order
        await exchange.engine.fireSwitches(Date.now() as never)
        const query = exchange.db.selectFrom('orders').select(['status', 'status_reason'])
        return query.where('order_id', '=', order_id).executeTakeFirstOrThrow()
      }
      await revoke(alice, 'bot')
      await own.closed
      expect((await statusOfOrder()).status).to.equal('OPEN')
      const fired = await waitFor(statusOfOrder, ({ status }) => status !== 'OPEN', {
        budgetMs: 12_000,
        everyMs: 200,
      })
      expect(fired).to.deep.equal({ status: 'CANCELLED', status_reason: 'DEAD_MAN_SWITCH' })
      expect((await other.call('ping')).type).to.equal('result')
      await other.close()
    })

    it('when one of two connections of a key ends, its switch does not fire while the other has one', async () => {
      const alice = await newUser()
      await exchange.project()
      const bot = await stored(alice, 'bot')
      const [first, second] = [await connect(bot), await connect(bot)]
      await first.call('cancel_on_disconnect', { grace_seconds: 5 })
      await second.call('cancel_on_disconnect', { grace_seconds: 900 })
      const { body: placed } = await exchange.place(alice)
      const statusAt = async (at: number): Promise<string> => {
        await exchange.engine.fireSwitches(at as never)
        const query = exchange.db.selectFrom('orders').select('status')
        return (await query.where('order_id', '=', placed.order.order_id).executeTakeFirstOrThrow()).status
      }
      await first.close()
      expect(await statusAt(Date.now() + 60_000)).to.equal('OPEN')
      await second.close()
      expect(await statusAt(Date.now() + 2_000_000)).to.equal('CANCELLED')
    })

    it("when the key that armed the account's switch is revoked, the switch stays armed", async () => {
      const alice = await newUser()
      const bot = await stored(alice, 'bot')
      await exchange.send(bot, 'POST', '/v0/orders/cancel/all-after', { timeout_seconds: 60 })
      await revoke(bot, 'bot')
      expect((await exchange.get(alice, '/v0/orders/cancel/all-after')).body.armed).to.equal(true)
    })
  })
})

import { SiweMessage } from '@signinwithethereum/siwe'
import { expect } from 'chai'
import { Signature, Wallet } from 'ethers'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { useAnvil } from '../../support/anvil.ts'
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

/** Accepts, as a contract wallet, every signature whose first byte is 2a. */
const CONTRACT_WALLET = '0x60643560001a602a14631626ba7e60e01b0260005260206000f3'
/** Reverts whatever it is asked. */
const REVERTING_WALLET = '0x60006000fd'

describe('replacing an API key', () => {
  const chain = useAnvil()
  let provider: IdentityProvider
  let exchange: ExchangeFixture
  let second: ExchangeFixture
  let env: Env
  let users = 0

  before(async () => {
    provider = await IdentityProvider.start()
    env = { ...provider.env, PUBLIC_URL: 'https://api.example/', AUTH_DOMAIN: 'app.example' }
    exchange = await startExchange({ ...env, RPC_URL: chain.url })
    second = await startSecondApi(exchange, env)
  })
  after(async () => {
    await second.stop()
    await exchange.stop()
    provider.stop()
  })

  const newUser = (): Promise<User> => createUser(exchange.db, `rotating ${++users}`)
  const bearerOf = async ({ address }: Pick<User, 'address'>): Promise<Env> => ({
    authorization: `Bearer ${await provider.token({ wallet_address: address })}`,
  })
  const challengeOf = async (user: User): Promise<{ challenge_id: string; message: string }> =>
    (await exchange.send(user, 'POST', '/v0/auth/challenge', { action: 'rotate_api_key' })).body
  const rotate = (user: User, body: Record<string, unknown>, headers: Env = {}): Promise<Answer> =>
    exchange.send(user, 'POST', '/v0/me/api-key/rotate', body, headers)
  const signed = async (user: User, signer: Wallet = user.wallet) => {
    const { challenge_id, message } = await challengeOf(user)
    return { challenge_id, signature: await signer.signMessage(message) }
  }
  const keyOf = (user: User) =>
    exchange.db.selectFrom('api_keys').selectAll().where('user_id', '=', user.userId).execute()
  const works = async (api: ExchangeFixture, user: User, apiKey: string): Promise<boolean> =>
    (await api.get({ ...user, apiKey }, '/v0/me')).status === 200

  it('when a challenge is requested, its text names account, action, domain, chain and five minutes of life', async () => {
    const alice = await newUser()
    const requested = Date.now()
    const { body } = await exchange.send(alice, 'POST', '/v0/auth/challenge', { action: 'rotate_api_key' })
    const text = new SiweMessage(body.message)
    expect(text).to.include({
      ...{ domain: 'app.example', address: alice.wallet.address, chainId: 6343, version: '1' },
      ...{ uri: 'https://api.example/v0/me/api-key/rotate', requestId: body.challenge_id },
      ...{ expirationTime: body.expires_at },
    })
    expect(text.statement).to.match(/^Create an API key .* The current key stops working at once\./)
    expect(text.nonce).to.match(/^[A-Za-z0-9]{16,}$/)
    expect(Date.parse(body.expires_at) - requested).to.be.within(299_000, 302_000)
  })

  it('when a wallet without a key signs in, it creates its first key by the same calls', async () => {
    const wallet = Wallet.createRandom()
    const headers = await bearerOf(wallet)
    const ask = (path: string, body?: unknown) =>
      exchange.send(null, body ? 'POST' : 'GET', path, body, headers)
    expect((await ask('/v0/me')).body.api_key).to.equal(null)
    const { body: challenge } = await ask('/v0/auth/challenge', { action: 'rotate_api_key' })
    const signature = await wallet.signMessage(challenge.message)
    const { challenge_id } = challenge
    const {
      status,
      body,
      headers: answered,
    } = await ask('/v0/me/api-key/rotate', {
      ...{ challenge_id, signature },
    })
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(body).to.include({ scope: 'trade', allowed_addresses: null, prefix: body.api_key.slice(0, 10) })
    expect(answered['cache-control']).to.equal('no-store')
    const { body: me } = await exchange.send(null, 'GET', '/v0/me', undefined, {
      authorization: `Key ${body.api_key}`,
    })
    const address = wallet.address.toLowerCase()
    expect(me).to.include({ user_id: body.user_id, address, credential: 'api_key', scope: 'trade' })
    expect(me.api_key).to.include({ prefix: body.prefix, created_at: body.created_at })
  })

  it('when a key is replaced, the old one is valid until then and ends in every process, and only the hash is stored', async () => {
    const alice = await newUser()
    const request = await signed(alice)
    for (const api of [exchange, second]) expect(await works(api, alice, alice.apiKey)).to.equal(true)
    const { body } = await rotate(alice, request)
    expect(JSON.stringify(await keyOf(alice))).to.not.include(body.api_key.slice(10))
    for (const api of [exchange, second]) {
      for (let tries = 0; tries < 100 && (await works(api, alice, alice.apiKey)); tries++)
        await new Promise((resolve) => setTimeout(resolve, 10))
      expect(await works(api, alice, alice.apiKey)).to.equal(false)
      expect(await works(api, alice, body.api_key)).to.equal(true)
    }
  })

  it('when a key is replaced, the process that answers refuses the old key at the next request', async () => {
    let user = await newUser()
    for (let count = 0; count < 10; count++) {
      expect(await works(exchange, user, user.apiKey)).to.equal(true)
      const { status, body } = await rotate(user, await signed(user))
      expect(status, JSON.stringify(body)).to.equal(200)
      expect(await works(exchange, user, user.apiKey), `after rotation ${count}`).to.equal(false)
      user = { ...user, apiKey: body.api_key }
    }
  })

  it('when the listening connection of a process breaks as a key is replaced, the process refuses the old key at once', async () => {
    const alice = await newUser()
    const request = await signed(alice)
    // Authenticated twice, so that the key is in the cache.
    for (let uses = 0; uses < 2; uses++) expect(await works(second, alice, alice.apiKey)).to.equal(true)
    await sql`
      select pg_terminate_backend(pid, 5000) from pg_stat_activity
      where datname = current_database() and application_name = 'clearbatch api listen'
    `.execute(exchange.db)
    expect((await rotate(alice, request)).status).to.equal(200)
    const refused = await waitFor(
      () => works(second, alice, alice.apiKey),
      (isAccepted) => !isAccepted,
      { budgetMs: 5_000, everyMs: 10 },
    )
    expect(refused).to.equal(false)
  })

  it('when the same challenge is used again, it is refused and says that a lost key needs another challenge', async () => {
    const alice = await newUser()
    const request = await signed(alice)
    const headers = await bearerOf(alice)
    expect((await rotate(alice, request, headers)).status).to.equal(200)
    const key = await keyOf(alice)
    const again = await rotate(alice, request, headers)
    expect(codeOf(again)).to.deep.equal([409, 'CHALLENGE_USED'])
    expect(again.body.message).to.match(/request another challenge with an identity token/)
    expect(await keyOf(alice)).to.deep.equal(key)
  })

  it('when two rotations run at once, with one challenge or with two, exactly one succeeds', async () => {
    for (const challenges of [1, 2]) {
      const user = await newUser()
      const headers = await bearerOf(user)
      const one = await signed(user)
      const requests = challenges === 1 ? [one, one, one] : [one, await signed(user)]
      const answers = await Promise.all(requests.map((request) => rotate(user, request, headers)))
      const codes = answers.map(({ status, body }) => body.details?.code ?? status).sort()
      expect(codes).to.deep.equal([200, ...Array(requests.length - 1).fill('CHALLENGE_USED')])
      const created = answers.find(({ status }) => status === 200)?.body.api_key
      expect(await works(exchange, user, created)).to.equal(true)
    }
  })

  it('when a challenge has expired, it is refused with CHALLENGE_EXPIRED', async () => {
    const alice = await newUser()
    const request = await signed(alice)
    await exchange.db
      .updateTable('auth_challenges')
      .set({ expires_at: Date.now() - 5_000 })
      .where('challenge_id', '=', request.challenge_id)
      .execute()
    expect(codeOf(await rotate(alice, request))).to.deep.equal([409, 'CHALLENGE_EXPIRED'])
  })

  it('when a challenge is unknown or of another account, the answers are equal', async () => {
    const [alice, bob] = [await newUser(), await newUser()]
    const request = await signed(bob)
    const unknown = { ...request, challenge_id: '00000000-0000-4000-8000-000000000000' }
    const answers = [await rotate(alice, request), await rotate(alice, unknown)]
    const bodies = answers.map(({ status, body }) => {
      const { request_id, ...details } = body.details
      return { status, message: body.message, details }
    })
    expect(bodies[0]).to.deep.equal(bodies[1])
    expect(bodies[0]).to.deep.include({ status: 404 })
    expect(bodies[0]?.details.code).to.equal('CHALLENGE_UNKNOWN')
  })

  it("when the signature is not the owner's own in its one form, it is refused, and the challenge stays open", async () => {
    const alice = await newUser()
    const { challenge_id, message } = await challengeOf(alice)
    const own = await alice.wallet.signMessage(message)
    const { r, s, v } = Signature.from(own)
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
    const highS = `${r}${(order - BigInt(s)).toString(16).padStart(64, '0')}${v === 27 ? '1c' : '1b'}`
    const other = await Wallet.createRandom().signMessage(message)
    const refused = [
      [`${own}01`, 'WALLET_SIGNATURE_FORMAT'],
      [own.slice(0, -2), 'WALLET_SIGNATURE_FORMAT'],
      ['', 'WALLET_SIGNATURE_FORMAT'],
      [`0x${'zz'.repeat(65)}`, 'WALLET_SIGNATURE_FORMAT'],
      [`0x${'11'.repeat(3_000)}`, 'WALLET_SIGNATURE_FORMAT'],
      [`${own.slice(0, -2)}1d`, 'SIGNATURE_V'],
      [highS, 'SIGNATURE_HIGH_S'],
      [`0x${'00'.repeat(64)}1b`, 'SIGNATURE_UNRECOVERABLE'],
      [other, 'WALLET_SIGNATURE_MISMATCH'],
      [await alice.wallet.signMessage(`${message} `), 'WALLET_SIGNATURE_MISMATCH'],
    ] as const
    for (const [signature, code] of refused)
      expect(codeOf(await rotate(alice, { challenge_id, signature })), signature).to.deep.equal([400, code])
    expect((await rotate(alice, { challenge_id, signature: own })).status).to.equal(200)
  })

  it('when a session key of the account signs, it is refused', async () => {
    const alice = await newUser()
    const session = Wallet.createRandom()
    const now = Math.floor(Date.now() / 1000)
    await exchange.db
      .insertInto('session_keys')
      .values({
        ...{ owner: alice.address, key: session.address.toLowerCase(), permissions: 3, registered_at: now },
        ...{ expires_at: now + 86_400, revoked_at: null, block: 1 },
      })
      .execute()
    const answer = await rotate(alice, await signed(alice, session as unknown as Wallet))
    expect(codeOf(answer)).to.deep.equal([400, 'WALLET_SIGNATURE_MISMATCH'])
  })

  it('when an account requests many challenges, at most five are stored, and the newest are valid', async () => {
    const alice = await newUser()
    const first = await signed(alice)
    for (let n = 0; n < 4; n++) await Promise.all([challengeOf(alice), challengeOf(alice)])
    const newest = await signed(alice)
    const { length } = await exchange.db
      .selectFrom('auth_challenges')
      .selectAll()
      .where('user_id', '=', alice.userId)
      .execute()
    expect(length).to.equal(5)
    expect(codeOf(await rotate(alice, first))).to.deep.equal([404, 'CHALLENGE_UNKNOWN'])
    expect((await rotate(alice, newest)).status).to.equal(200)
  })

  it('when a stolen key requests challenges until it is refused, the owner replaces it with an identity token', async () => {
    const limits = { RATE_LIMIT_AUTH: '1', RATE_LIMIT_WINDOW_SECONDS: '20' }
    const strict = await startSecondApi(exchange, { ...env, ...limits })
    const owner = await newUser()
    const headers = await bearerOf(owner)
    const challenge = (by: Env = {}): Promise<Answer> =>
      strict.send(owner, 'POST', '/v0/auth/challenge', { action: 'rotate_api_key' }, by)
    const { challenge_id, message } = (await challenge(headers)).body
    const stolen: number[] = []
    for (let n = 0; n < 21; n++) stolen.push((await challenge()).status)
    expect(stolen).to.deep.equal([...Array(20).fill(200), 429])
    const body = { challenge_id, signature: await owner.wallet.signMessage(message) }
    expect((await challenge(headers)).status).to.equal(200)
    const answer = await strict.send(owner, 'POST', '/v0/me/api-key/rotate', body, headers)
    expect(answer.status, JSON.stringify(answer.body)).to.equal(200)
    await strict.stop()
  })

  it('when a challenge is a day old, the next one of any account deletes it', async () => {
    const [alice, bob] = [await newUser(), await newUser()]
    const { challenge_id } = await challengeOf(bob)
    const created_at = Date.now() - 25 * 3_600_000
    const old = exchange.db.updateTable('auth_challenges').set({ created_at })
    await old.where('challenge_id', '=', challenge_id).execute()
    await challengeOf(alice)
    const rows = await exchange.db
      .selectFrom('auth_challenges')
      .selectAll()
      .where('user_id', '=', bob.userId)
      .execute()
    expect(rows).to.deep.equal([])
  })

  it('when the body is wrong, it names the field', async () => {
    const alice = await newUser()
    const request = await signed(alice)
    const wrong = [
      [{ ...request, challenge_id: 'x' }, 'challenge_id'],
      [{ ...request, scope: 'admin' }, 'scope'],
      [{ ...request, allowed_addresses: [] }, 'allowed_addresses'],
      [{ ...request, allowed_addresses: Array(33).fill('10.0.0.1') }, 'allowed_addresses'],
      [{ ...request, allowed_addresses: ['10.0.0.1', '10.0.0.0/33'] }, 'allowed_addresses'],
      [{ ...request, allowed_addresses: ['::ffff:10.0.0.1'] }, 'allowed_addresses'],
      [{ ...request, expires: 1 }, 'expires'],
    ] as const
    for (const [body, field] of wrong) {
      const answer = await rotate(alice, body)
      expect([answer.status, answer.body.details.field], field).to.deep.equal([400, field])
    }
    const { body } = await exchange.send(alice, 'POST', '/v0/auth/challenge', { action: 'withdraw' })
    expect(body.details).to.include({ code: 'INVALID_FIELD', field: 'action' })
  })

  describe('a contract wallet', () => {
    const contractUser = async (code: string): Promise<User> => {
      const user = await newUser()
      await fetch(chain.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'anvil_setCode',
          params: [user.address, code],
        }),
      })
      return user
    }
    const answerTo = async (user: User, signature: string): Promise<Answer> =>
      rotate(user, { challenge_id: (await challengeOf(user)).challenge_id, signature })

    it('when its contract accepts the signature, of whatever length, the key is created; otherwise not', async () => {
      const safe = await contractUser(CONTRACT_WALLET)
      expect(codeOf(await answerTo(safe, `0x${'11'.repeat(130)}`))).to.deep.equal([
        ...[400, 'WALLET_SIGNATURE_FORMAT'],
      ])
      expect((await answerTo(safe, `0x2a${'11'.repeat(129)}`)).status).to.equal(200)
    })

    it('when its contract reverts, or the account has no code, the signature is refused', async () => {
      for (const user of [await contractUser(REVERTING_WALLET), await newUser()])
        expect(codeOf(await answerTo(user, `0x2a${'11'.repeat(69)}`))).to.deep.equal([
          ...[400, 'WALLET_SIGNATURE_FORMAT'],
        ])
    })

    it('when the chain does not respond, the answer is 503 and the challenge stays open', async () => {
      const away = await startSecondApi(exchange, { RPC_URL: 'http://127.0.0.1:1' })
      const safe = await contractUser(CONTRACT_WALLET)
      const { challenge_id } = await challengeOf(safe)
      const body = { challenge_id, signature: `0x2a${'11'.repeat(69)}` }
      const answer = await away.send(safe, 'POST', '/v0/me/api-key/rotate', body)
      await away.stop()
      expect(codeOf(answer)).to.deep.equal([503, 'WALLET_CHECK_UNAVAILABLE'])
      expect((await rotate(safe, body)).status).to.equal(200)
    })
  })
})

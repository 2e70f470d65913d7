import { once } from 'node:events'
import { type AddressInfo, connect as connectSocket } from 'node:net'
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, afterEach, before, describe, it } from 'mocha'
import { createApiKey } from '../../../api/auth/credentials.ts'
import { LiveClient, type LiveOptions } from '../../support/live-client.ts'
import {
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  startSecondApi,
  type User,
} from '../support/exchange-fixture.ts'
import { IdentityProvider } from '../support/identity-provider.ts'
import { until } from '../support/wait.ts'

describe('a connection of the live feed', function () {
  this.timeout(60_000)
  let provider: IdentityProvider
  let exchange: ExchangeFixture
  let alice: User
  let bob: User
  let base: string
  const open: LiveClient[] = []

  before(async () => {
    provider = await IdentityProvider.start()
    exchange = await startExchange({
      ...provider.env,
      LIVE_HEARTBEAT_MS: '400',
      LIVE_MESSAGES: '20',
      LIVE_SUBSCRIPTIONS: '0',
      LIVE_CONNECTIONS_PER_ACCOUNT: '3',
      LIVE_CONNECTIONS_PER_ADDRESS: '6',
    })
    alice = await createUser(exchange.db, 'alice')
    bob = await createUser(exchange.db, 'bob')
    await exchange.project()
    await exchange.api.app.listen({ port: 0, host: '127.0.0.1' })
    base = `http://127.0.0.1:${(exchange.api.app.server.address() as AddressInfo).port}`
  })
  after(async () => {
    await exchange.stop()
    provider.stop()
  })
  afterEach(async () => {
    await Promise.all(open.splice(0).map((client) => client.close()))
  })

  const connect = async (options: LiveOptions = {}): Promise<LiveClient> => {
    const client = await LiveClient.open(base, options)
    open.push(client)
    return client
  }
  const keyOf = (user: User) => ({ headers: { authorization: `Key ${user.apiKey}` } })
  const refusal = async (options: LiveOptions) => {
    const refused = await connect(options).then(
      () => ({ status: 101, details: {} }),
      (error) => error,
    )
    return { status: refused.status, code: refused.details.code }
  }

  describe('its credential', () => {
    it('when the request has a key, the connection belongs to its account', async () => {
      const client = await connect(keyOf(alice))
      const { body } = signedBody(alice)
      const { type, op, data, read_after } = await client.call('place', { body })
      expect({ type, op }).to.deep.equal({ type: 'result', op: 'place' })
      expect(data.order.user_id).to.equal(alice.userId)
      expect(read_after).to.deep.equal(data.read_after)
    })

    it('when the request has an invalid credential, it is answered with 401 and not upgraded', async () => {
      const authorization = `Key cb_${'x'.repeat(43)}`
      expect(await refusal({ headers: { authorization } })).to.deep.equal({
        status: 401,
        code: 'API_KEY_UNKNOWN',
      })
      expect(await refusal({ headers: { authorization: 'Basic x' } })).to.deep.equal({
        status: 401,
        code: 'CREDENTIAL_MALFORMED',
      })
    })

    it('when the first message authenticates, the operations after it are those of the account', async () => {
      const client = await connect()
      const before = await client.call('place', { body: signedBody(alice).body })
      expect(before.data).to.deep.include({ status: 401 })
      expect(before.data.details).to.include({ code: 'CREDENTIAL_MISSING', outcome: 'not_read' })
      const auth = client.send('auth', { authorization: `Key ${alice.apiKey}` })
      const placed = await client.call('place', { body: signedBody(alice).body })
      expect(placed.data.order.user_id).to.equal(alice.userId)
      const { data } = await client.find(({ id }) => id === auth)
      const { userId: user_id } = alice
      expect(data).to.deep.equal({ user_id, scope: 'trade', credential: 'api_key', expires_at: null })
    })

    it('when it is authenticated as another account, it stays that of the first', async () => {
      const client = await connect(keyOf(alice))
      const { data } = await client.call('auth', { authorization: `Key ${bob.apiKey}` })
      expect({ status: data.status, code: data.details.code }).to.deep.equal({
        status: 409,
        code: 'CONNECTION_IN_USE',
      })
    })

    it('when the key is read-only, commands are rejected', async () => {
      const carol = await createUser(exchange.db, 'carol')
      const key = await createApiKey(exchange.db, carol.userId, { scope: 'read', allowed_addresses: null })
      const client = await connect({ headers: { authorization: `Key ${key}` } })
      for (const [op, fields] of [
        ['place', { body: signedBody(carol).body }],
        ['cancel_all', { body: {} }],
        ['cancel_on_disconnect', { grace_seconds: 5 }],
      ] as const)
        expect((await client.call(op, fields)).data.details).to.include({ code: 'READ_ONLY_KEY' })
    })

    it('when the key is replaced, the connections of its account are closed and others stay', async () => {
      const dave = await createUser(exchange.db, 'dave')
      const [mine, other] = [await connect(keyOf(dave)), await connect(keyOf(bob))]
      await createApiKey(exchange.db, dave.userId)
      expect(await mine.closed).to.deep.equal({ code: 4401, reason: 'the API key was replaced' })
      expect((await other.call('ping')).type).to.equal('result')
      expect(await refusal(keyOf(dave))).to.deep.equal({ status: 401, code: 'API_KEY_UNKNOWN' })
    })

    it('when the notification of a replaced key is lost, its connection is closed once notifications arrive again', async () => {
      const erin = await createUser(exchange.db, 'erin')
      const client = await connect(keyOf(erin))
      await sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name = 'clearbatch api listen'
      `.execute(exchange.db)
      await createApiKey(exchange.db, erin.userId)
      expect((await client.closed).code).to.equal(4401)
    })

    it('when an identity token expires, its connection is closed, unless it was renewed before', async () => {
      const token = async (seconds: number) =>
        provider.token({ wallet_address: alice.address, exp: Math.floor(Date.now() / 1000) + seconds })
      const headers = { authorization: `Bearer ${await token(2)}` }
      const [ending, renewed] = [await connect({ headers }), await connect({ headers })]
      const { data } = await renewed.call('auth', { authorization: `Bearer ${await token(300)}` })
      expect(data).to.include({ credential: 'identity_token' })
      expect(await ending.closed).to.deep.equal({ code: 4401, reason: 'the identity token has expired' })
      expect((await renewed.call('ping')).type).to.equal('result')
    })
  })

  describe('its messages', () => {
    const wrong = [
      { what: 'no JSON', text: '{', code: 'INVALID_JSON', id: null },
      { what: 'a list', text: '[]', code: 'INVALID_JSON', id: null },
      { what: 'no op', text: '{"id":1}', code: 'MISSING_FIELD', id: 1, field: 'op' },
      { what: 'an unknown op', text: '{"op":"buy","id":"a"}', code: 'INVALID_FIELD', id: 'a', field: 'op' },
      { what: 'no id', text: '{"op":"ping"}', code: 'MISSING_FIELD', id: null, field: 'id' },
      {
        what: 'an unknown field',
        text: '{"op":"ping","id":"a","x":1}',
        code: 'UNKNOWN_FIELD',
        id: 'a',
        field: 'x',
      },
      {
        what: 'a field twice',
        text: '{"op":"ping","id":"a","id":"b"}',
        code: 'DUPLICATE_FIELD',
        id: null,
        field: 'id',
      },
      {
        what: 'an unknown topic',
        text: '{"op":"subscribe","id":"a","topics":["market.0.book"]}',
        code: 'TOPIC_NOT_FOUND',
        id: 'a',
      },
      {
        what: 'a body with an unknown field',
        text: '{"op":"cancel_all","id":"a","body":{"market":1}}',
        code: 'UNKNOWN_FIELD',
        id: 'a',
        field: 'market',
      },
    ]
    for (const { what, text, code, id, field } of wrong)
      it(`when a message has ${what}, it is rejected by name and the connection goes on`, async () => {
        const client = await connect()
        client.raw(text)
        const { type, id: answered, data } = await client.find((message) => message.type === 'error')
        expect({ type, id: answered, code: data.details.code }).to.deep.equal({ type: 'error', id, code })
        if (field !== undefined) expect(data.details.field).to.equal(field)
        expect(data.details.request_id).to.match(/^\w+-\w+-\d+$/)
        expect((await client.call('ping')).type).to.equal('result')
      })

    it('when malformed messages are repeated, the connection is closed', async () => {
      const client = await connect()
      for (let count = 0; count < 11; count++) client.raw('{')
      expect(await client.closed).to.deep.equal({ code: 4400, reason: 'too many malformed messages' })
    })

    it('when messages come faster than their limit, they are rejected; at twice the limit the connection is closed', async () => {
      const client = await connect()
      for (let count = 0; count <= 200; count++) client.raw(JSON.stringify({ op: 'ping', id: count }))
      expect(await client.closed).to.deep.equal({ code: 4429, reason: 'too many messages' })
      const answers = client.messages.filter(({ type }) => type !== 'heartbeat')
      expect(answers.filter(({ type }) => type === 'result')).to.have.length(100)
      const { status, details, retry_after } = answers.at(-1).data
      expect({ status, code: details.code, scope: details.scope }).to.deep.equal({
        ...{ status: 429, code: 'RATE_LIMITED', scope: 'connection' },
      })
      expect(retry_after).to.be.within(1, 5)
    })

    it('when a message is larger than any operation, the connection is closed', async () => {
      const client = await connect()
      client.raw(`{"op":"ping","id":"${'x'.repeat(200_000)}"}`)
      expect((await client.closed).code).to.equal(1009)
    })

    it('when a message other than a batch is large, it is rejected', async () => {
      const client = await connect(keyOf(alice))
      client.raw(JSON.stringify({ op: 'ping', id: 'x'.repeat(40_000) }))
      const { data } = await client.find(({ type }) => type === 'error')
      expect(data.details).to.include({ code: 'BODY_TOO_LARGE' })
    })
  })

  describe('its limits', () => {
    it('when an account has too many connections, a further one is rejected until one is closed', async () => {
      const clients = [await connect(keyOf(bob)), await connect(keyOf(bob)), await connect(keyOf(bob))]
      expect(await refusal(keyOf(bob))).to.deep.equal({ status: 429, code: 'CONNECTION_LIMIT' })
      const anonymous = await connect()
      const { data } = await anonymous.call('auth', { authorization: `Key ${bob.apiKey}` })
      expect(data.details).to.include({ code: 'CONNECTION_LIMIT', scope: 'account' })
      await clients[0]?.close()
      await until(
        async () => (await anonymous.call('auth', { authorization: `Key ${bob.apiKey}` })).type === 'result',
      )
    })

    it('when an address has too many connections, a further one is rejected', async () => {
      for (let count = 0; count < 6; count++) await connect()
      expect(await refusal({})).to.deep.equal({ status: 429, code: 'CONNECTION_LIMIT' })
    })

    it('when the connections of one IPv6 network come from many addresses, they count together', async () => {
      const proxied = await startSecondApi(exchange, { TRUST_PROXY: '1', LIVE_CONNECTIONS_PER_ADDRESS: '2' })
      const clients: LiveClient[] = []
      try {
        await proxied.api.app.listen({ port: 0, host: '127.0.0.1' })
        const to = `http://127.0.0.1:${(proxied.api.app.server.address() as AddressInfo).port}`
        const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })
        for (const address of ['2001:db8:1:2::1', '2001:db8:1:2:ffff::2'])
          clients.push(await LiveClient.open(to, from(address)))
        const refused = await LiveClient.open(to, from('2001:db8:1:2:aaaa:bbbb:cccc:dddd')).then(
          () => null,
          (error: unknown) => error,
        )
        expect(refused, 'the third address of the network').to.not.equal(null)
        clients.push(await LiveClient.open(to, from('2001:db8:1:3::1')))
      } finally {
        for (const client of clients) await client.close()
        await proxied.stop()
      }
    })

    it('when the connections of an address send too many messages together, further ones are rejected', async () => {
      const crowded = await startSecondApi(exchange, {
        RATE_LIMIT_ADDRESS: '1',
        RATE_LIMIT_WINDOW_SECONDS: '50',
      })
      try {
        await crowded.api.app.listen({ port: 0, host: '127.0.0.1' })
        const to = `http://127.0.0.1:${(crowded.api.app.server.address() as AddressInfo).port}`
        const clients = [await LiveClient.open(to), await LiveClient.open(to)] as const
        const answers = await Promise.all(
          Array.from({ length: 52 }, (_, at) => (at % 2 === 0 ? clients[0] : clients[1]).call('ping')),
        )
        expect(answers.filter(({ type }) => type === 'result')).to.have.length(50)
        for (const { data } of answers.filter(({ type }) => type === 'error'))
          expect(data.details).to.include({ code: 'RATE_LIMITED', scope: 'address' })
        await Promise.all(clients.map((client) => client.close()))
      } finally {
        await crowded.stop()
      }
    })

    it('when a connection has too many subscriptions, a further one is rejected', async () => {
      const client = await connect()
      const { topic, data } = await client.call('subscribe', { topics: ['market.1.book'] })
      expect(topic).to.equal('market.1.book')
      expect(data.details).to.include({ code: 'SUBSCRIPTION_LIMIT' })
    })

    it('when a request to the path is no upgrade, it is rejected by name', async () => {
      const { status, body } = await exchange.get(null, '/v0/ws')
      expect({ status, code: body.details.code }).to.deep.equal({ status: 400, code: 'UPGRADE_REQUIRED' })
    })

    it('when a request to another path asks for an upgrade, it is answered as without', async () => {
      const socket = connectSocket(Number(new URL(base).port), '127.0.0.1')
      socket.write('GET /v0/time HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
      const [answer] = await once(socket, 'data')
      expect(String(answer)).to.match(/^HTTP\/1.1 200 OK/)
      socket.destroy()
    })
  })
})

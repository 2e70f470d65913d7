/** Credentials of all kinds to a real process that logs everything: neither its logs nor its errors nor its metrics contain one. */
import { expect } from 'chai'
import { Wallet } from 'ethers'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { WebSocket } from 'ws'
import { createApiKey } from '../../../api/auth/credentials.ts'
import { LIVE_PATH } from '../../../api/live/path.ts'
import { createDb, createPool, type Db } from '../../../db/client.ts'
import { freePort } from '../../../stack/ports.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { type ApiProcess, startApiProcess } from '../support/api-process.ts'
import { createUser, seedMarkets, type User } from '../support/exchange-fixture.ts'
import { IdentityProvider } from '../support/identity-provider.ts'

const OF_ACCOUNTS = /^\/v0\/(auth|me|session-keys|account|faucet|balance|users|positions|orders)\b/

interface Operation {
  readonly method: string
  readonly path: string
}

interface Created {
  readonly api_key: string
}

describe('credentials', function () {
  this.timeout(60_000)
  let provider: IdentityProvider
  let db: Db
  let api: ApiProcess
  let metricsUrl: string
  let alice: User
  let output = ''
  const errors: string[] = []
  /** Every secret that was sent, and every new key. */
  const secrets = new Set<string>()
  const secret = (text: string): string => {
    secrets.add(text)
    return text
  }

  before(async () => {
    provider = await IdentityProvider.start()
    const url = await freshDatabase()
    db = createDb(createPool({ url, connections: 2, name: 'test' }))
    await seedMarkets(db)
    alice = await createUser(db, 'careless alice')
    const port = await freePort()
    metricsUrl = `http://127.0.0.1:${port}/metrics`
    const env = {
      ...{ LOG_LEVEL: 'debug', LOG_REQUESTS: 'on', INTERNAL_PORT: String(port), ...provider.env },
      ...{ FAUCET_WAIT_MS: '20', RELAY_WAIT_MS: '20', ADJUSTMENT_WAIT_MS: '20', READ_AFTER_WAIT_MS: '20' },
    }
    api = await startApiProcess(url, env, (text) => {
      output += text
    })
  })
  after(async () => {
    const ended = new Promise((resolve) => api.process.once('exit', resolve))
    api.process.kill('SIGTERM')
    await ended
    await db.destroy()
    provider.stop()
  })

  async function send({ method, path }: Operation, authorization: string, body?: unknown): Promise<Response> {
    const response = await fetch(`${api.base}${path}`, {
      method,
      headers: { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.clone().text()
    if (!response.ok) errors.push(`${response.status} ${text} ${JSON.stringify([...response.headers])}`)
    return response
  }

  async function operations(): Promise<Operation[]> {
    const { paths } = (await (await fetch(`${api.base}/v0/openapi.json`)).json()) as {
      paths: Record<string, Record<string, unknown>>
    }
    return Object.entries(paths)
      .filter(([path]) => OF_ACCOUNTS.test(path))
      .flatMap(([path, methods]) =>
        Object.keys(methods).map((method) => ({
          method: method.toUpperCase(),
          path: path.replace(/\{\w+\}/g, String(alice.userId)),
        })),
      )
  }

  /** Valid and invalid headers. */
  async function headers(): Promise<string[]> {
    const now = Math.floor(Date.now() / 1000)
    const { address } = alice
    const key = secret(alice.apiKey)
    const unknown = secret(`cb_${'Zy9-_'.repeat(8)}abc`)
    const stranger = await IdentityProvider.start()
    const foreign = secret(await stranger.token({ wallet_address: address }))
    stranger.stop()
    const token = secret(await provider.token({ wallet_address: address }))
    const expired = secret(await provider.token({ wallet_address: address, exp: now - 60 }))
    const early = secret(await provider.token({ wallet_address: address, nbf: now + 600 }))
    const ownerless = secret(await provider.token({}))
    const uuid = secret('0b5dc2a1-7c4e-4a1b-9d7e-5d1c8c3f9a02')
    const basic = secret(Buffer.from(`alice:${key}`).toString('base64'))
    const bearers = [token, expired, early, ownerless, foreign, `${token}x`, key, uuid]
    return [
      ...[`Key ${key}`, `Key ${unknown}`, key, `${key} x`, `Key ${key} x`, `Key ${token}`, `Basic ${basic}`],
      ...bearers.map((bearer) => `Bearer ${bearer}`),
      ...[`${token} x`, ''],
    ]
  }

  function bodies(signature: string): unknown[] {
    const privateKey = secret(alice.wallet.privateKey)
    const fields = [
      ...[
        { private_key: privateKey },
        { privateKey },
        { session_private_key: privateKey },
        { key: privateKey },
      ],
      ...[{ api_key: alice.apiKey }, { [alice.apiKey]: 1 }, { nested: { api_key: alice.apiKey } }],
      ...[{ signature }, { signature: [signature] }, { signature: `${signature}${'00'.repeat(200)}` }],
      ...[{ challenge_id: alice.apiKey, signature }, { session_public_address: alice.apiKey }],
      { symbol: alice.apiKey, address: signature },
    ]
    return [{}, ...fields, alice.apiKey, [signature]]
  }

  const challenge = async (authorization: string): Promise<{ challenge_id: string; message: string }> => {
    const created = { method: 'POST', path: '/v0/auth/challenge' }
    return (await send(created, authorization, { action: 'rotate_api_key' })).json() as never
  }
  const rotation = { method: 'POST', path: '/v0/me/api-key/rotate' }

  it('when they are sent to every endpoint of accounts, in every place, none is logged or repeated', async () => {
    const all = await operations()
    const bearer = `Bearer ${secret(await provider.token({ wallet_address: alice.address }))}`
    const { challenge_id, message } = await challenge(bearer)
    const signature = secret(await alice.wallet.signMessage(message))
    const wrong = secret(await Wallet.createRandom().signMessage(message))
    const presented = await headers()
    const sent = bodies(signature)
    const query = new URLSearchParams({
      ...{ api_key: alice.apiKey, access_token: bearer.slice(7), private_key: alice.wallet.privateKey },
    })
    for (const operation of all) {
      const { method, path } = operation
      const body = method === 'GET' ? undefined : {}
      for (const authorization of presented) await send(operation, authorization, body)
      await send({ method, path: `${path}?${query}` }, bearer, body)
      if (method === 'POST') for (const each of sent) await send(operation, bearer, each)
    }
    for (const path of ['/v0/session-keys/operations/', '/v0/orders/', '/v0/', '/v0/orders/by-hash/'])
      await send({ method: 'GET', path: `${path}${alice.apiKey}` }, bearer)
    for (const each of [wrong, signature.slice(0, -2)])
      await send(rotation, bearer, { challenge_id, signature: each })
    const { api_key } = (await (await send(rotation, bearer, { challenge_id, signature })).json()) as Created
    expect(secret(api_key)).to.match(/^cb_/)
    await send(rotation, bearer, { challenge_id, signature })
    expectNone()
    expect(errors.length).to.be.greaterThan(300)
    expect(output.split('\n').length).to.be.greaterThan(errors.length)
  })

  /** What a connection with these headers answers to the message: its frames, or the refusal of the upgrade. */
  function talk(authorization: string | null, message: string): Promise<string[]> {
    const frames: string[] = []
    const url = `${api.base.replace('http', 'ws')}${LIVE_PATH}`
    const socket = new WebSocket(url, { headers: authorization === null ? {} : { authorization } })
    return new Promise((resolve) => {
      socket.on('error', () => {})
      socket.on('close', () => resolve(frames))
      socket.on('open', () => socket.send(message))
      socket.on('message', (data) => {
        frames.push(String(data))
        socket.close()
      })
      socket.on('unexpected-response', (_, response) => {
        response.on('data', (data) => frames.push(String(data))).on('end', () => socket.terminate())
      })
    })
  }

  it('when they are sent over the live feed, in headers and messages, none is logged or repeated', async () => {
    const presented = await headers()
    const key = secret(alice.apiKey)
    const messages = [
      ...presented.map((authorization) => ({ op: 'auth', id: 1, authorization })),
      ...[
        { op: key, id: 1 },
        { op: 'auth', id: 1, authorization: [key] },
        { op: 'auth', id: 1, api_key: key },
      ],
      ...[
        { op: 'subscribe', id: 1, topics: [key] },
        { op: 'subscribe', id: 1, topics: [], since: { [key]: key } },
      ],
      { op: 'place', id: 1, body: { signature: key, private_key: secret(alice.wallet.privateKey) } },
    ].map((message) => JSON.stringify(message))
    const frames: string[] = []
    for (const authorization of presented) frames.push(...(await talk(authorization, '{"op":"ping","id":1}')))
    for (const message of [...messages, key, `{"${key}`]) frames.push(...(await talk(null, message)))
    const refused = frames.filter((frame) => frame.includes('"code"'))
    expect(refused.length).to.be.greaterThan(30)
    errors.push(...frames)
    expectNone()
  })

  it('when the database fails or breaks off, what is logged contains none', async () => {
    const bearer = `Bearer ${secret(await provider.token({ wallet_address: alice.address }))}`
    const { challenge_id, message } = await challenge(bearer)
    const signature = secret(await alice.wallet.signMessage(message))
    const credentials = [bearer, `Key ${secret(await createApiKey(db, alice.userId))}`]
    const ask = async (): Promise<number[]> => {
      const statuses: number[] = []
      for (const authorization of credentials) {
        for (const path of ['/v0/me', '/v0/session-keys', '/v0/account/adjustment-attempts'])
          statuses.push((await send({ method: 'GET', path }, authorization)).status)
        statuses.push((await send(rotation, authorization, { challenge_id, signature })).status)
      }
      return statuses
    }
    for (const [breaks, mends] of [
      ['alter table api_keys rename to broken_keys', 'alter table broken_keys rename to api_keys'],
      ['alter table auth_challenges rename to broken', 'alter table broken rename to auth_challenges'],
    ] as const) {
      await sql.raw(breaks).execute(db)
      expect(await ask()).to.include(500)
      await sql.raw(mends).execute(db)
    }
    const breakOff = sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where pid <> pg_backend_pid() and datname = current_database() and application_name like 'clearbatch api%'
    `
    const asked = Array.from({ length: 5 }, () => ask())
    for (let times = 0; times < 5; times++) await breakOff.execute(db)
    await Promise.all(asked)
    expect(output).to.match(/"msg":"request failed"/)
    expectNone()
  })

  it('when the metrics are read, they contain none', async () => {
    const metrics = await (await fetch(metricsUrl)).text()
    expect(metrics).to.include('api_request_duration_seconds')
    for (const each of secrets) expect(metrics.includes(each), 'a credential in the metrics').to.equal(false)
  })

  function expectNone(): void {
    for (const each of secrets) {
      const [plain, encoded] = [each.toLowerCase(), encodeURIComponent(each).toLowerCase()]
      const lines = [...output.split('\n'), ...errors].filter((line) => {
        const text = line.toLowerCase()
        return text.includes(plain) || text.includes(encoded)
      })
      expect(lines.slice(0, 5)).to.deep.equal([])
    }
  }
})

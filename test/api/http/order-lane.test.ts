import { channel } from 'node:diagnostics_channel'
import type { ServerResponse } from 'node:http'
import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import {
  codeOf,
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  startSecondApi,
  type User,
} from '../support/exchange-fixture.ts'

/** Published by fastify for each request that it handles. */
const handled = channel('tracing:fastify.request.handler:start')

describe('the order lane', () => {
  let exchange: ExchangeFixture
  let alice: User
  let handledRequests = 0
  const count = () => {
    handledRequests++
  }
  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    // The first answers of the routes come from the framework.
    const { body } = await exchange.place(alice)
    await exchange.cancel(alice, body.order.order_hash)
  })
  after(() => exchange.stop())
  beforeEach(() => {
    handledRequests = 0
    handled.subscribe(count)
  })
  afterEach(() => handled.unsubscribe(count))

  const place = (body: unknown, headers = {}) => exchange.send(alice, 'POST', '/v0/orders', body, headers)

  /** The answer of the framework to the same request. */
  const framework = async (body: string) => {
    const headers = { authorization: `Key ${alice.apiKey}`, 'content-type': 'application/json' }
    const answer = await exchange.api.app.inject({
      method: 'POST',
      url: '/v0/orders',
      headers,
      payload: body,
    })
    return { status: answer.statusCode, headers: answer.headers, body: answer.json() }
  }

  it('when an order is placed and cancelled, the framework handles neither request', async () => {
    const placed = await place(signedBody(alice).body)
    expect(placed.status).to.equal(200)
    const cancelled = await exchange.cancel(
      alice,
      placed.body.order.order_hash.toUpperCase().replace('0X', '0x'),
    )
    expect(cancelled.body).to.include({ cancelled: true, is_duplicate: false })
    expect(handledRequests).to.equal(0)
  })

  it('when an order is repeated, both ways answer it with the same fields and headers', async () => {
    const { body } = signedBody(alice)
    await place(body)
    const lane = await place(body)
    const other = await framework(JSON.stringify(body))
    expect(handledRequests).to.equal(1)
    expect(lane.body).to.deep.equal(other.body)
    const namesOf = (headers: object) =>
      Object.keys(headers).filter((name) => !['date', 'connection', 'keep-alive'].includes(name))
    expect(namesOf(lane.headers)).to.have.members(namesOf(other.headers))
    expect(lane.headers['x-request-id']).not.to.equal(other.headers['x-request-id'])
  })

  for (const [name, body] of [
    ['is no JSON', '{'],
    ['lacks a field', '{}'],
    ['has an unknown field', JSON.stringify({ ...signedBodyOf(), dry_run: true })],
    ['has a field twice', '{"salt":"1","salt":"2"}'],
    ['names a market that does not exist', JSON.stringify({ ...signedBodyOf(), market_id: 99 })],
  ] as const)
    it(`when a body ${name}, both ways answer with the same error`, async () => {
      const lane = await place(body)
      const other = await framework(body)
      const { request_id: _, ...details } = lane.body.details
      const { request_id: __, ...others } = other.body.details
      expect([lane.status, details]).to.deep.equal([other.status, others])
    })

  it('when a request has an Origin, the framework answers it', async () => {
    const answer = await place(signedBody(alice).body, { origin: 'https://example.org' })
    expect(answer.status).to.equal(200)
    expect(handledRequests).to.equal(1)
  })

  for (const part of ['writeHead', 'end'] as const)
    it(`when sending an answer fails in ${part}, the command is executed once and the connection ends without another answer`, async () => {
      const { body, hash } = signedBody(alice)
      const sent: unknown[] = []
      const failing = (_: unknown, response: ServerResponse) => {
        const method = response[part].bind(response) as (...args: unknown[]) => never
        response[part] = (...args: unknown[]) => {
          sent.push(args[0])
          if (sent.length === 1) throw new Error('injected: the answer cannot be sent')
          return method(...args)
        }
      }
      exchange.api.app.server.prependOnceListener('request', failing)
      const ended = await place(body).then(
        ({ status }) => `answered ${status}`,
        ({ code }) => code,
      )
      expect(ended).to.equal('ECONNRESET')
      expect(sent).to.have.length(1)
      await exchange.project()
      const stored = await exchange.get(alice, `/v0/orders/by-hash/${hash}`)
      expect(stored.status).to.equal(200)
    })

  it('when the limit of the account is reached, the answers count down to it and then reject', async () => {
    const limited = await startSecondApi(exchange, { RATE_LIMIT_ORDERS: '1', RATE_LIMIT_WINDOW_SECONDS: '5' })
    try {
      const answers = []
      for (let sent = 0; sent < 7; sent++)
        answers.push(await limited.send(alice, 'POST', '/v0/orders', signedBody(alice).body))
      const ok = answers.filter(({ status }) => status === 200)
      expect(ok.map(({ headers }) => headers['ratelimit-remaining'])).to.deep.equal(['4', '3', '2', '1', '0'])
      expect(answers.slice(5).map(codeOf)).to.deep.equal([
        [429, 'RATE_LIMITED'],
        [429, 'RATE_LIMITED'],
      ])
    } finally {
      await limited.stop()
    }
  })
})

/** The fields of a placement, with a signature that no key has made. */
function signedBodyOf() {
  return {
    market_id: 1,
    side: 'LONG',
    order_type: 'LIMIT',
    price: '100',
    quantity: '1',
    salt: '1',
    expiration_seconds: 0,
    signature: `0x${'11'.repeat(65)}`,
  }
}

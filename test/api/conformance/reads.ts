/** Tests generated from the tables of endpoints and answers. */
import { expect } from 'chai'
import { describe } from 'mocha'
import { expectAmountsAgree, expectField, expectObject } from './answers.ts'
import { ENDPOINTS, type Endpoint, FIELDS } from './contract.ts'
import { endpointId, fieldId, test } from './coverage.ts'
import { type Answer, bookmarkOf } from './exchange.ts'
import { draftOf, expectAnswer, requestId, type Suite } from './requests.ts'
import { signed } from './signing.ts'

/** The path with the ids of the owner. */
function pathFor({ path }: Endpoint, { fixture }: Suite): string {
  const { owner, partly, market } = fixture
  return path
    .replace(':user_id', String(owner.userId))
    .replace(':order_id', partly.order_id)
    .replace(':order_hash', partly.order_hash)
    .replace(':market_id', String(market.market_id))
    .replace(':address', owner.address)
}

const withQuery = (path: string, query: string): string => `${path}${path.includes('?') ? '&' : '?'}${query}`

/** A valid body. */
function bodyFor({ path }: Endpoint, { fixture }: Suite): unknown {
  const { owner, market, cancelled } = fixture
  const order = () => signed(owner, market, draftOf(market)).body
  const sizing = { market_id: 1, side: 'LONG' }
  switch (path) {
    case '/v0/orders':
      return order()
    case '/v0/orders/place/batch':
      return { client_request_id: requestId(), mode: 'best_effort', orders: [order()] }
    case '/v0/orders/cancel/batch':
      return { client_request_id: requestId(), orderHashes: [cancelled.order_hash] }
    case '/v0/orders/validate':
      return order()
    case '/v0/orders/cancel/all':
      return { market_id: 4 }
    case '/v0/orders/cancel/all-after':
      return { timeout_seconds: 0 }
    case '/v0/orders/calculate-quantity':
      return { ...sizing, usd_amount: 1000 }
    case '/v0/orders/estimate':
      return { ...sizing, order_type: 'MARKET', sizing_intent: 'notional', size: 1000 }
    default:
      return {}
  }
}

const request = (
  endpoint: Endpoint,
  suite: Suite,
  account: Suite['fixture']['owner'] | null,
): Promise<Answer> =>
  suite.exchange.send(account, endpoint.method, pathFor(endpoint, suite), {
    ...(endpoint.method === 'POST' && { body: bodyFor(endpoint, suite) }),
  })

/** The objects in answers that are arrays. */
const ITEMS: Readonly<Record<string, string>> = { markets: 'market', statistics: 'market statistics' }

export function testEndpoints(suite: () => Suite): void {
  for (const endpoint of ENDPOINTS) {
    const id = endpointId(endpoint)
    describe(id, () => {
      test(id, 'when it is requested, it answers 200 with its object and consistent amounts', async () => {
        const { fixture } = suite()
        const account = endpoint.access === 'own' ? fixture.owner : null
        const { status, body } = await request(endpoint, suite(), account)
        expect(status, JSON.stringify(body)).to.equal(200)
        expectAmountsAgree(body)
        const item = ITEMS[endpoint.answer]
        if (item === undefined) expectObject(endpoint.answer, body)
        else for (const each of body) expectObject(item, each)
      })
      if (endpoint.access === 'own') testOwnership(endpoint, id, suite)
      if (endpoint.bookmark) testBookmarks(endpoint, id, suite)
    })
  }
}

function testOwnership(endpoint: Endpoint, id: string, suite: () => Suite): void {
  test(id, 'when the credential is missing, it answers 401', async () => {
    const { status, body } = await request(endpoint, suite(), null)
    expect([status, body.details.code]).to.deep.equal([401, 'CREDENTIAL_MISSING'])
    expectObject('error', body)
  })
  if (!/:(user_id|order_id|order_hash)/.test(endpoint.path)) return
  test(id, 'when the data belongs to another user, it answers 403', async () => {
    const { status, body } = await request(endpoint, suite(), suite().fixture.other)
    expect([status, body.details.code]).to.deep.equal([403, 'NOT_YOURS'])
  })
  if (endpoint.path.includes(':user_id')) return
  test(id, 'when the order does not exist, it answers 404', async () => {
    const { exchange, fixture } = suite()
    const path = endpoint.path
      .replace(':order_id', '1-999999999')
      .replace(':order_hash', `0x${'00'.repeat(32)}`)
    const { status, body } = await exchange.send(fixture.owner, endpoint.method, path, {
      ...(endpoint.method === 'POST' && { body: {} }),
    })
    expect([status, body.details.code]).to.deep.equal([404, 'ORDER_NOT_FOUND'])
  })
}

function testBookmarks(endpoint: Endpoint, id: string, suite: () => Suite): void {
  const read = async (query: string): Promise<Answer> => {
    const { exchange, fixture } = suite()
    const account = endpoint.access === 'own' ? fixture.owner : null
    return exchange.get(account, withQuery(pathFor(endpoint, suite()), query))
  }
  test(id, 'when it has a bookmark, it answers 200', async () => {
    const { status, body } = await read(bookmarkOf(suite().fixture.readAfter))
    expect(status, JSON.stringify(body)).to.equal(200)
  })
  test(id, 'when the bookmark is incomplete or stale, it is rejected', async () => {
    expectAnswer(
      await read('read_after_shard_id=m1.1'),
      {
        ...{ status: 400, code: 'INCOMPLETE_BOOKMARK', field: 'read_after_shard_seq' },
      },
      false,
    )
    expectAnswer(
      await read('read_after_shard_id=m999.1&read_after_shard_seq=1'),
      {
        ...{ status: 409, code: 'HTV1_READ_AFTER_STALE_BOOKMARK', field: 'read_after_shard_id' },
      },
      false,
    )
  })
}

type Json = Readonly<Record<string, unknown>>

/** Reads an object of that name. */
async function sample(name: string, { exchange, fixture }: Suite): Promise<Json> {
  const { owner, partly, market } = fixture
  const own = async (path: string): Promise<Answer['body']> => (await exchange.get(owner, path)).body
  const answers: Readonly<Record<string, () => Promise<Json>>> = {
    order: () => own(`/v0/orders/${partly.order_id}`),
    fill: async () => (await own(`/v0/orders/${partly.order_id}/fills`)).fills[0],
    event: async () => (await own(`/v0/orders/${partly.order_id}/events`)).events[0],
    level: async () => (await own(`/v0/orderbook/by-market/${market.market_id}`)).long_levels[0],
    'read after': async () => fixture.readAfter,
    balance: async () => (await own(`/v0/balance/${owner.userId}/margin`)).balance,
    transaction: async () => (await own('/v0/account/transactions')).transactions[0],
    market: () => own(`/v0/markets/${market.market_id}`),
    'market statistics': async () => (await own('/v0/markets/stats'))[0],
    candle: async () => (await own(`/v0/markets/${market.market_id}/candlesticks`)).candles[0],
    error: () => own('/v0/orders/1-999999999'),
  }
  const known = answers[name]
  if (known !== undefined) return known()
  const endpoint = ENDPOINTS.find(({ answer }) => answer === name) as Endpoint
  return (await request(endpoint, { exchange, fixture }, owner)).body
}

export function testFields(suite: () => Suite): void {
  for (const [name, fields] of Object.entries(FIELDS)) {
    describe(`the fields of ${name}`, () => {
      for (const field of Object.keys(fields)) {
        test(fieldId(name, field), `when it is returned, it has ${field}`, async () =>
          expectField(name, await sample(name, suite()), field),
        )
      }
    })
  }
}

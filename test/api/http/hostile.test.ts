import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import {
  type Answer,
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'

/** Requests that a program sends by mistake or an attacker on purpose: none of them may answer 500. */
describe('hostile requests', () => {
  let exchange: ExchangeFixture
  let alice: User
  let bob: User
  let hash: string
  let orderId: string

  before(async () => {
    exchange = await startExchange({ READ_AFTER_WAIT_MS: '100' })
    alice = await createUser(exchange.db, 'alice')
    bob = await createUser(exchange.db, 'bob')
    const { body } = await exchange.place(alice)
    hash = body.order.order_hash
    orderId = body.order.order_id
    await exchange.project()
  })
  after(() => exchange.stop())

  const details = ({ status, body }: Answer) => ({ status, ...body.details })
  const post = (text: string, headers = {}) => exchange.send(alice, 'POST', '/v0/orders', text, headers)
  const place = (changes: Record<string, unknown>) =>
    exchange.send(alice, 'POST', '/v0/orders', { ...signedBody(alice).body, ...changes })

  describe('text that Postgres cannot store', () => {
    for (const [what, reason] of [
      ['NUL', 'a\u0000b'],
      ['an unpaired surrogate', 'a\ud800b'],
    ] as const) {
      it(`when the reason of a cancel has ${what}, it rejects the reason`, async () => {
        const answer = await exchange.cancel(alice, hash, { reason })
        expect(details(answer)).to.include({ status: 400, code: 'INVALID_FIELD', field: 'reason' })
        expect((await exchange.get(alice, `/v0/orders/${orderId}`)).body.status).to.equal('OPEN')
      })
    }

    for (const path of [
      '/v0/orders/%00',
      '/v0/orders/%00/fills',
      "/v0/orders/1-1'",
      '/v0/orders/%F0%9F%98%80',
    ]) {
      it(`when the id of an order in ${path} cannot be stored, it rejects the request`, async () => {
        expect(details(await exchange.get(alice, path))).to.include({
          ...{ status: 400, code: 'INVALID_FIELD', field: 'order_id', expected: '<market>-<number>' },
        })
      })
    }
  })

  describe('numbers in a URL', () => {
    for (const market of [2 ** 31, Number.MAX_SAFE_INTEGER]) {
      it(`when a list is filtered by market ${market}, which exceeds the column, it returns an empty list`, async () => {
        const { userId } = alice
        const pages = [
          (await exchange.get(alice, `/v0/orders/by-user/${userId}?market_id=${market}`)).body.orders,
          (await exchange.get(alice, `/v0/fills/by-user/${userId}?market_id=${market}`)).body.fills,
          (await exchange.get(alice, `/v0/positions/by-user/${userId}?market_id=${market}`)).body.positions,
        ]
        expect(pages).to.deep.equal([[], [], []])
      })
    }

    for (const form of ['1.5', '1e0', '0x1', '+1', ' 1', '1 ', '', '１', 'NaN']) {
      it(`when a number is written as "${form}", it rejects it`, async () => {
        const text = encodeURIComponent(form)
        const expected = 'a whole number from 1'
        if (form !== '') {
          const own = await exchange.get(alice, `/v0/balance/${text}/margin`)
          expect(details(own)).to.include({ status: 400, field: 'user_id', expected, received: form })
          const market = await exchange.get(null, `/v0/markets/${text}`)
          expect(details(market)).to.include({ status: 400, field: 'market_id', expected, received: form })
        }
        const page = await exchange.get(alice, `/v0/orders/by-user/${alice.userId}?limit=${text}`)
        expect(details(page)).to.include({
          status: 400,
          field: 'limit',
          expected: 'a whole number from 1 to 1000',
        })
      })
    }

    it('when a number is outside its bounds, it rejects it with the bounds', async () => {
      for (const [limit, nearest_valid] of [
        ['0', 1],
        ['-1', 1],
        ['1001', 1000],
        ['99999999999999999999', 1000],
      ] as const) {
        const page = await exchange.get(null, `/v0/markets?limit=${limit}`)
        expect(details(page)).to.include({
          status: 400,
          field: 'limit',
          expected: 'a whole number from 1 to 1000',
          nearest_valid,
        })
      }
    })
  })

  it('when market_id in a body is not a whole number from 1, it rejects it', async () => {
    for (const market_id of [0, -1, 0.5, '-1', '1.0', '0', '01', null, true]) {
      const answer = details(await place({ market_id }))
      expect(answer, String(market_id)).to.include({ status: 400, code: 'INVALID_FIELD', field: 'market_id' })
      expect(answer.expected).to.equal('a whole number from 1')
    }
    for (const market_id of [99, 2 ** 31, 1e300]) {
      expect(details(await place({ market_id }))).to.include({ status: 404, code: 'MARKET_NOT_FOUND' })
    }
  })

  describe('the valid values in an error', () => {
    const cases: readonly (readonly [string, Record<string, unknown>, unknown])[] = [
      ['price', { price: '1,5' }, 'a decimal from 0 with up to 18 decimals, as a number or a string'],
      ['price', { price: -1 }, 'a decimal from 0 with up to 18 decimals, as a number or a string'],
      ['quantity', { quantity: 'NaN' }, 'a decimal from 0 with up to 18 decimals, as a number or a string'],
      ['quantity_e18_raw', { quantity_e18_raw: 5 }, 'a string of up to 60 digits'],
      ['leverage', { leverage: '1.5' }, 'a whole number, as a number or a string of up to 15 digits'],
      ['salt', { salt: 5 }, 'a string of digits, a whole number below 2^53'],
      ['side', { side: 'BUY' }, ['LONG', 'SHORT']],
      ['side', { side: null }, ['LONG', 'SHORT']],
      ['reduce_only', { reduce_only: 'yes' }, 'boolean'],
    ]
    for (const [field, changes, expected] of cases) {
      it(`when the body has ${JSON.stringify(changes)}, it states what would be valid`, async () => {
        const answer = details(await place(changes))
        expect(answer).to.include({ status: 400, code: 'INVALID_FIELD', field })
        expect([answer.expected, answer.received]).to.deep.equal([expected, changes[field]])
      })
    }

    it('when a field is missing or unknown, it lists the valid values or fields', async () => {
      expect(details(await place({ side: undefined })).expected).to.deep.equal(['LONG', 'SHORT'])
      const unknown = details(await place({ usd_amount: 5 }))
      expect(unknown).to.include({ field: 'usd_amount', received: 5 })
      expect(unknown.expected).to.include.members(['market_id', 'quantity']).and.not.include('usd_amount')
    })

    it('when the body is not JSON, too large, or of another content type, it states what would be valid', async () => {
      expect(details(await post('{"price":NaN}'))).to.include({ field: 'body', expected: 'a JSON object' })
      const large = details(await post(`{"salt":"${'1'.repeat(2_000_000)}"}`))
      expect(large).to.include({
        status: 400,
        field: 'body',
        expected: 'at most 16384 bytes',
        received: '2000011 bytes',
      })
      const typed = details(await post('{}', { 'content-type': 'text/plain' }))
      expect(typed).to.include({
        field: 'content-type',
        expected: 'application/json',
        received: 'text/plain',
      })
    })

    it('when a cursor or a bookmark is invalid, it states what would be valid', async () => {
      const page = `/v0/orders/by-user/${alice.userId}`
      const cursor = details(await exchange.get(alice, `${page}?cursor=garbage`))
      expect(cursor)
        .to.include({ status: 400, field: 'cursor', received: 'garbage' })
        .and.have.property('expected')
      const half = details(await exchange.get(alice, `${page}?read_after_shard_id=m1.1`))
      expect(half).to.include({ status: 400, field: 'read_after_shard_seq' }).and.have.property('expected')
    })

    it('when the account or order belongs to another user, it states what would be valid', async () => {
      const balance = details(await exchange.get(bob, `/v0/balance/${alice.userId}/margin`))
      expect(balance).to.include({
        status: 403,
        field: 'user_id',
        expected: bob.userId,
        received: alice.userId,
      })
      const order = details(await exchange.get(bob, `/v0/orders/${orderId}`))
      expect(order).to.include({ status: 403, field: 'order_id', received: orderId })
      expect(details(await exchange.get(alice, '/v0/orders/1-999'))).to.include({
        status: 404,
        field: 'order_id',
      })
    })
  })

  describe('the received value in an error', () => {
    it('when a value or name is long, nested, or one of many, it shortens it', async () => {
      const long = details(await exchange.cancel(alice, hash, { reason: 'x'.repeat(10_000) }))
      expect(long.received).to.equal(`${'x'.repeat(200)}… (10000 characters in all)`)
      const named = details(await place({ ['y'.repeat(10_000)]: 1 }))
      expect(JSON.stringify(named).length).to.be.lessThan(2_000)
      const many = Object.fromEntries(Array.from({ length: 800 }, (_, at) => [`field${at}`, at]))
      expect(JSON.stringify(details(await place(many))).length).to.be.lessThan(2_000)
      for (const depth of [100, 1_000, 2_000, 8_000]) {
        const deep = await post('['.repeat(depth) + ']'.repeat(depth))
        expect([deep.status, JSON.stringify(deep.body).length < 2_000], `${depth}`).to.deep.equal([400, true])
      }
    })
  })

  describe('bodies with invalid structure', () => {
    it('when a body nests deeper than 8 levels, it rejects the body', async () => {
      const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
      const item = (text: string) =>
        `{"client_request_id":"deep","mode":"best_effort","orders":[{"price":${text}}]}`
      for (const depth of [8, 5_000]) {
        for (const [path, text] of [
          ['/v0/orders', `{"x":${nested(depth)}}`],
          ['/v0/orders', `{"x":${nested(depth).replace('[]', '[1e5]')}}`],
          ['/v0/orders/place/batch', item(nested(depth))],
          ['/v0/orders/cancel/all', `{"reason":${nested(depth)}}`],
        ] as const) {
          const answer = details(await exchange.send(alice, 'POST', path, text))
          expect(answer, `${path} ${depth}`).to.include({ status: 400, field: 'body', outcome: 'not_read' })
          expect(answer.expected).to.equal('at most 8 levels of nesting')
        }
      }
      const deepest = await exchange.send(alice, 'POST', '/v0/orders/place/batch', item(nested(40_000)))
      expect(details(deepest)).to.include({ status: 400, field: 'body' })
    })

    it('when a body contains a field twice, it rejects the body before any effect', async () => {
      const all = await exchange.send(alice, 'POST', '/v0/orders/cancel/all', '{"market_id":2,"market_id":1}')
      expect(details(all)).to.include({ status: 400, code: 'DUPLICATE_FIELD', field: 'market_id' })
      const { body } = signedBody(alice)
      const text = JSON.stringify({ client_request_id: 'twice', mode: 'atomic', orders: [body, body] })
      const again = text.replace(/"side":"LONG"(?!.*"side")/, '"side":"LONG","s\\u0069de":"SHORT"')
      const batch = await exchange.send(alice, 'POST', '/v0/orders/place/batch', again)
      expect(details(batch)).to.include({ status: 400, code: 'DUPLICATE_FIELD', field: 'orders.1.side' })
      expect((await exchange.get(alice, `/v0/orders/${orderId}`)).body.status).to.equal('OPEN')
    })

    it('when a body is compressed, it rejects the body and names the header', async () => {
      const answer = await exchange.send(alice, 'POST', '/v0/orders', '{}', { 'content-encoding': 'gzip' })
      expect(details(answer)).to.include({
        ...{ status: 400, code: 'UNSUPPORTED_ENCODING', field: 'content-encoding', received: 'gzip' },
      })
    })

    it('when a field has a name of Object.prototype, it rejects the field as unknown', async () => {
      for (const name of ['__proto__', 'constructor', 'toString']) {
        const answer = details(await post(`{"${name}":{}}`))
        expect(answer).to.include({ status: 400, code: 'UNKNOWN_FIELD', field: name })
        expect(answer).to.not.have.property('hint')
      }
    })

    it('when an item of a best_effort batch is not an order, it rejects that item only', async () => {
      const { body } = signedBody(alice)
      const send = (mode: string) => {
        const batch = { client_request_id: `none-${mode}`, mode, orders: [null, body, 5, []] }
        return exchange.send(alice, 'POST', '/v0/orders/place/batch', batch)
      }
      expect(details(await send('atomic'))).to.include({
        status: 400,
        code: 'INVALID_FIELD',
        field: 'orders.0',
      })
      const { status, body: answer } = await send('best_effort')
      expect([status, answer.accepted, answer.refused]).to.deep.equal([200, 1, 3])
      expect(answer.results[2].error.details).to.include({ expected: 'a signed order', received: 5 })
    })
  })

  it('when a list has far too many items, it rejects the list by its length', async () => {
    const many = Array.from({ length: 40_000 }, () => 1)
    const orders = { client_request_id: 'many', mode: 'atomic', orders: many }
    const answer = details(await exchange.send(alice, 'POST', '/v0/orders/place/batch', orders))
    expect(answer).to.include({ field: 'orders', expected: '1 to 50 signed orders', received: '40000 items' })
    const hashes = { client_request_id: 'many', orderHashes: many.slice(0, 5_000) }
    const other = details(await exchange.send(alice, 'POST', '/v0/orders/cancel/batch', hashes))
    expect(other).to.include({ field: 'orderHashes', received: '5000 items' })
  })

  it('when a command has an unknown query field, it rejects the command without effect', async () => {
    const before = await exchange.state()
    for (const [path, body] of [
      ['/v0/orders?dry_run=true', signedBody(alice).body],
      ['/v0/orders/cancel/all?dry_run=true', {}],
      [`/v0/orders/cancel/by-hash/${hash}?dry_run=true`, {}],
    ] as const) {
      const answer = details(await exchange.send(alice, 'POST', path, body))
      expect(answer).to.include({ status: 400, code: 'UNKNOWN_FIELD', field: 'dry_run' })
    }
    expect(await exchange.state()).to.deep.equal(before)
    const shown = details(await exchange.get(alice, '/v0/orders/cancel/all-after?market_id=1'))
    expect(shown).to.include({ status: 400, field: 'market_id' })
  })

  it('when a path exists under another method only, it lists the valid methods', async () => {
    const { statusCode, headers, body } = await exchange.api.app.inject({ method: 'PUT', url: '/v0/orders/' })
    expect(statusCode).to.equal(404)
    expect(headers.allow).to.equal('POST')
    expect(JSON.parse(body).details).to.deep.include({
      expected: 'POST: this path has no PUT',
      code: 'ROUTE_NOT_FOUND',
    })
    const { headers: cancel } = await exchange.api.app.inject({ url: `/v0/orders/cancel/by-hash/${hash}` })
    expect(cancel.allow).to.equal('POST')
    const unknown = await exchange.get(null, '/v0/nothing')
    expect(unknown.headers).to.not.have.property('allow')
  })

  it('when a cursor belongs to another list, it rejects the cursor', async () => {
    await exchange.place(alice)
    await exchange.project()
    const { body } = await exchange.get(alice, `/v0/orders/by-user/${alice.userId}?limit=1`)
    const page = `/v0/fills/by-user/${alice.userId}?cursor=${body.next_cursor}`
    expect(details(await exchange.get(alice, page))).to.include({ status: 400, code: 'INVALID_CURSOR' })
  })

  it('when an OPTIONS request has no preflight headers, it is answered like a preflight', async () => {
    const { statusCode } = await exchange.api.app.inject({ method: 'OPTIONS', url: '/v0/orders' })
    expect(statusCode).to.equal(204)
  })
})

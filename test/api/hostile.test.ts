import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { type Answer, createUser, signedBody, startWorld, type User, type World } from './support/world.ts'

/** What a trader's program sends by mistake, or a stranger on purpose. Nothing of it is our fault: nothing is a 500. */
describe('hostile requests', () => {
  let world: World
  let alice: User
  let bob: User
  let hash: string
  let orderId: string

  before(async () => {
    world = await startWorld({ READ_AFTER_WAIT_MS: '100' })
    alice = await createUser(world.db, 'alice')
    bob = await createUser(world.db, 'bob')
    const { body } = await world.place(alice)
    hash = body.order.order_hash
    orderId = body.order.order_id
    await world.project()
  })
  after(() => world.stop())

  const details = ({ status, body }: Answer) => ({ status, ...body.details })
  const post = (text: string, headers = {}) => world.send(alice, 'POST', '/v0/orders', text, headers)
  const place = (changes: Record<string, unknown>) =>
    world.send(alice, 'POST', '/v0/orders', { ...signedBody(alice).body, ...changes })

  describe('text that cannot be stored', () => {
    for (const [what, reason] of [
      ['NUL', 'a\u0000b'],
      ['half a surrogate pair', 'a\ud800b'],
    ] as const) {
      it(`as the reason of a cancel: ${what}`, async () => {
        const answer = await world.cancel(alice, hash, { reason })
        expect(details(answer)).to.include({ status: 400, code: 'INVALID_FIELD', field: 'reason' })
        expect((await world.get(alice, `/v0/orders/${orderId}`)).body.status).to.equal('OPEN')
      })
    }

    for (const path of [
      '/v0/orders/%00',
      '/v0/orders/%00/fills',
      "/v0/orders/1-1'",
      '/v0/orders/%F0%9F%98%80',
    ]) {
      it(`as the id of an order: ${path}`, async () => {
        expect(details(await world.get(alice, path))).to.include({
          ...{ status: 400, code: 'INVALID_FIELD', field: 'order_id', expected: '<market>-<number>' },
        })
      })
    }
  })

  describe('numbers in an address', () => {
    for (const market of [2 ** 31, Number.MAX_SAFE_INTEGER]) {
      it(`a market ${market} that the database could not hold filters everything out`, async () => {
        const { userId } = alice
        const pages = [
          (await world.get(alice, `/v0/orders/by-user/${userId}?market_id=${market}`)).body.orders,
          (await world.get(alice, `/v0/fills/by-user/${userId}?market_id=${market}`)).body.fills,
          (await world.get(alice, `/v0/positions/by-user/${userId}?market_id=${market}`)).body.positions,
        ]
        expect(pages).to.deep.equal([[], [], []])
      })
    }

    for (const form of ['1.5', '1e0', '0x1', '+1', ' 1', '1 ', '', '１', 'NaN']) {
      it(`are digits alone: "${form}" is none`, async () => {
        const text = encodeURIComponent(form)
        const expected = 'a whole number from 1'
        if (form !== '') {
          const own = await world.get(alice, `/v0/balance/${text}/margin`)
          expect(details(own)).to.include({ status: 400, field: 'user_id', expected, received: form })
          const market = await world.get(null, `/v0/markets/${text}`)
          expect(details(market)).to.include({ status: 400, field: 'market_id', expected, received: form })
        }
        const page = await world.get(alice, `/v0/orders/by-user/${alice.userId}?limit=${text}`)
        expect(details(page)).to.include({
          status: 400,
          field: 'limit',
          expected: 'a whole number from 1 to 1000',
        })
      })
    }

    it('are within their bounds', async () => {
      for (const limit of ['0', '-1', '1001', '99999999999999999999']) {
        const page = await world.get(null, `/v0/markets?limit=${limit}`)
        expect(details(page)).to.include({
          status: 400,
          field: 'limit',
          expected: 'a whole number from 1 to 1000',
        })
      }
    })
  })

  it('a market in a body is a whole number from 1', async () => {
    for (const market_id of [0, -1, 0.5, '-1', '1.0', null, true]) {
      const answer = details(await place({ market_id }))
      expect(answer, String(market_id)).to.include({ status: 400, code: 'INVALID_FIELD', field: 'market_id' })
      expect(answer.expected).to.equal('a whole number from 1')
    }
    for (const market_id of [99, 2 ** 31, 1e300]) {
      expect(details(await place({ market_id }))).to.include({ status: 404, code: 'MARKET_NOT_FOUND' })
    }
  })

  describe('what would be valid is told', () => {
    const cases: readonly (readonly [string, Record<string, unknown>, unknown])[] = [
      ['price', { price: '1,5' }, 'a decimal from 0 with up to 18 decimals, as a number or a string'],
      ['price', { price: -1 }, 'a decimal from 0 with up to 18 decimals, as a number or a string'],
      ['quantity', { quantity: 'NaN' }, 'a decimal from 0 with up to 18 decimals, as a number or a string'],
      ['quantity_e18_raw', { quantity_e18_raw: 5 }, 'a string of digits'],
      ['leverage', { leverage: '1.5' }, 'a whole number, as a number or a string of up to 15 digits'],
      ['salt', { salt: 5 }, 'a string of digits, a whole number below 2^53'],
      ['side', { side: 'BUY' }, ['LONG', 'SHORT']],
      ['reduce_only', { reduce_only: 'yes' }, 'boolean'],
    ]
    for (const [field, changes, expected] of cases) {
      it(`for ${JSON.stringify(changes)}`, async () => {
        const answer = details(await place(changes))
        expect(answer).to.include({ status: 400, code: 'INVALID_FIELD', field })
        expect([answer.expected, answer.received]).to.deep.equal([expected, changes[field]])
      })
    }

    it('for a field that is missing, and for one that is unknown', async () => {
      expect(details(await place({ side: undefined })).expected).to.deep.equal(['LONG', 'SHORT'])
      const unknown = details(await place({ usd_amount: 5 }))
      expect(unknown).to.include({ field: 'usd_amount', received: 5 })
      expect(unknown.expected).to.include.members(['market_id', 'quantity']).and.not.include('usd_amount')
    })

    it('for a body that is no JSON, too large, or of another type', async () => {
      expect(details(await post('{"price":NaN}'))).to.include({ field: 'body', expected: 'a JSON object' })
      const large = details(await post(`{"salt":"${'1'.repeat(2_000_000)}"}`))
      expect(large).to.include({
        status: 400,
        field: 'body',
        expected: 'at most 131072 bytes',
        received: '2000011 bytes',
      })
      const typed = details(await post('{}', { 'content-type': 'text/plain' }))
      expect(typed).to.include({
        field: 'content-type',
        expected: 'application/json',
        received: 'text/plain',
      })
    })

    it('for a cursor and a bookmark', async () => {
      const page = `/v0/orders/by-user/${alice.userId}`
      const cursor = details(await world.get(alice, `${page}?cursor=garbage`))
      expect(cursor)
        .to.include({ status: 400, field: 'cursor', received: 'garbage' })
        .and.have.property('expected')
      const half = details(await world.get(alice, `${page}?read_after_shard_id=m1.1`))
      expect(half).to.include({ status: 400, field: 'read_after_shard_seq' }).and.have.property('expected')
    })

    it("for another's account and order", async () => {
      const balance = details(await world.get(bob, `/v0/balance/${alice.userId}/margin`))
      expect(balance).to.include({
        status: 403,
        field: 'user_id',
        expected: bob.userId,
        received: alice.userId,
      })
      const order = details(await world.get(bob, `/v0/orders/${orderId}`))
      expect(order).to.include({ status: 403, field: 'order_id', received: orderId })
      expect(details(await world.get(alice, '/v0/orders/1-999'))).to.include({
        status: 404,
        field: 'order_id',
      })
    })
  })

  describe('what was received is told in brief', () => {
    it('given a long value, a long name, many names, or a deep value', async () => {
      const long = details(await world.cancel(alice, hash, { reason: 'x'.repeat(100_000) }))
      expect(long.received).to.equal(`${'x'.repeat(200)}… (100000 characters in all)`)
      const named = details(await place({ ['y'.repeat(50_000)]: 1 }))
      expect(JSON.stringify(named).length).to.be.lessThan(2_000)
      const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`field${at}`, at]))
      expect(JSON.stringify(details(await place(many))).length).to.be.lessThan(2_000)
      for (const depth of [100, 1_000, 2_000, 20_000]) {
        const deep = await post('['.repeat(depth) + ']'.repeat(depth))
        expect([deep.status, JSON.stringify(deep.body).length < 2_000], `${depth}`).to.deep.equal([400, true])
      }
    })
  })

  it('a preflight that is none is answered like one', async () => {
    const { statusCode } = await world.api.app.inject({ method: 'OPTIONS', url: '/v0/orders' })
    expect(statusCode).to.equal(204)
  })
})

/** The label `builder` of orders, and the public ledger of builders. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { buildersOfDay, daysOfBuilder } from '../../../api/builders/query.ts'
import { createExplainedDb } from '../../support/explained-db.ts'
import {
  type Answer,
  codeOf,
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { append, clearedRow, settledRow, submittedRow, type Trade } from '../support/trade-rows.ts'

const PATH = '/v0/builders'
const DAY = 86_400_000
const TRADED = '1970-01-01'

describe('builders', function () {
  this.timeout(60_000)
  let exchange: ExchangeFixture
  let alice: User
  let bob: User

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    bob = await createUser(exchange.db, 'bob')
  })
  after(() => exchange.stop())

  const place = (user: User, terms: object, builder?: unknown): Promise<Answer> =>
    exchange.send(user, 'POST', '/v0/orders', { ...signedBody(user, terms).body, builder })
  const list = async (query: string) => (await exchange.get(null, `${PATH}?${query}`)).body
  const ofDay = async (day: string) =>
    (await list(`day=${day}`)).builders.map((row: Record<string, unknown>) => [
      row.builder,
      row.volume,
      row.fills,
      row.orders,
    ])

  it('when an order of any type has a builder, its owner sees it with the order', async () => {
    for (const terms of [{ price: '90' }, { type: 'STOP_MARKET', trigger: '110' }]) {
      const { status, body } = await place(alice, terms, 'terminal-7')
      expect(status, JSON.stringify(body)).to.equal(200)
      expect(body.order.builder).to.equal('terminal-7')
      await exchange.project()
      const read = await exchange.get(alice, `/v0/orders/${body.order.order_id}`)
      expect(read.body.builder).to.equal('terminal-7')
    }
    expect((await place(alice, { price: '90' })).body.order.builder).to.equal(null)
  })

  it('when a signed order is repeated with another builder, it is 409 and the order keeps its label', async () => {
    const { body } = signedBody(alice, { price: '89' })
    const send = (builder?: string) => exchange.send(alice, 'POST', '/v0/orders', { ...body, builder })
    const first = await send('one')
    for (const other of ['two', undefined]) {
      const refused = await send(other)
      expect(codeOf(refused)).to.deep.equal([409, 'ORDER_FLAGS_DIFFER'])
      expect(refused.body.details).to.deep.include({
        field: 'builder',
        expected: { time_in_force: 'gtc', post_only: false, bracket_id: null, builder: 'one' },
        received: { time_in_force: 'gtc', post_only: false, bracket_id: null, builder: other ?? null },
        order_id: first.body.order.order_id,
      })
    }
    const same = await send('one')
    expect([same.status, same.body.is_duplicate, same.body.order.builder]).to.deep.equal([200, true, 'one'])
  })

  it('when a builder is not a valid label, the answer names the field and no order is placed', async () => {
    for (const builder of ['', 'b'.repeat(33), 'Terminal', 'a_b', 'a b', 'é', "a'--", 7, {}, null]) {
      const { status, body } = await place(alice, {}, builder)
      expect([status, body.details.code, body.details.field]).to.deep.equal([400, 'INVALID_FIELD', 'builder'])
      expect(body.details).to.include.keys('expected', 'received')
      expect(body.details.outcome).to.equal('not_read')
    }
  })

  it('when an order is replaced, the new one has the label that it is sent with', async () => {
    const { body } = await place(alice, { price: '88' }, 'former')
    const replace = {
      cancel: { order_hash: body.order.order_hash },
      order: signedBody(alice, { price: '88.5' }).body,
    }
    const replaced = await exchange.send(alice, 'POST', '/v0/orders/replace', replace)
    expect(replaced.status, JSON.stringify(replaced.body)).to.equal(200)
    expect(replaced.body.order.builder).to.equal(null)
  })

  it('when orders are accepted, the ledger of the current day counts them, and only them', async () => {
    await place(alice, { price: '87' }, 'counted')
    await place(bob, { price: '87' }, 'counted')
    await place(alice, { price: '87' }, 'Counted')
    await exchange.project()
    const { builders } = await list('builder=counted')
    expect(builders).to.have.length(1)
    expect(builders[0]).to.include({ volume: 0, volume_e18_raw: '0', fills: 0, orders: 2 })
    const { builders: today } = await list('limit=1000')
    expect(today).to.deep.include(builders[0])
    expect(await list(`builder=counted&day=${TRADED}`)).to.deep.equal({ builders: [], next_cursor: null })
  })

  it('when fills are mined, the ledger counts them for both sides; when their block leaves the chain, it does not', async () => {
    const { body: buy } = await place(alice, { price: '99', quantity: '2' }, 'maker-desk')
    const { body: sell } = await place(bob, { side: 'SHORT', price: '101', quantity: '1' }, 'taker-app')
    const trade: Trade = {
      batch: 1,
      price: 1_000,
      steps: 400,
      buy: { orderId: buy.order.order_id, user: alice, status: 'OPEN' },
      sell: { orderId: sell.order.order_id, user: bob, status: 'OPEN' },
    }
    await append(exchange, clearedRow(trade), submittedRow(trade))
    await exchange.project()
    expect(await ofDay(TRADED)).to.deep.equal([])
    await append(exchange, settledRow(trade))
    await exchange.project()
    const counted = [
      ['maker-desk', 40, 1, 0],
      ['taker-app', 40, 1, 0],
    ]
    expect(await ofDay(TRADED)).to.deep.equal(counted)
    const { body: own } = await exchange.get(bob, `/v0/fills/by-user/${bob.userId}`)
    expect(own.fills[0].builder).to.equal('taker-app')
    const { body: open } = await exchange.get(null, '/v0/fills/by-market/1')
    expect(open.fills[0]).to.not.have.property('builder')
    await append(exchange, settledRow(trade, true))
    await exchange.project()
    expect((await ofDay(TRADED)).map(([, volume, fills]: unknown[]) => [volume, fills])).to.deep.equal([
      [0, 0],
      [0, 0],
    ])
    await append(exchange, settledRow(trade))
    await exchange.project()
    expect(await ofDay(TRADED)).to.deep.equal(counted)
  })

  it('when a day has many builders, pages list each once, by volume and label, with few database pages', async () => {
    const day = 3 * DAY
    await sql`
      insert into read.builder_days
      select 'b' || n, ${day}::bigint, n / 3 * 1000000000000000000::numeric, 1, 1 from generate_series(1, 20000) n
    `.execute(exchange.db)
    await sql`
      insert into read.builder_days select 'many', n * ${DAY}::bigint, 0, 0, 1 from generate_series(10, 900) n
    `.execute(exchange.db)
    await sql`analyze read.builder_days`.execute(exchange.db)
    const seen: string[] = []
    let query = 'day=1970-01-04&limit=1000'
    for (;;) {
      const { builders, next_cursor } = await list(query)
      seen.push(...builders.map(({ builder }: { readonly builder: string }) => builder))
      if (next_cursor === null) break
      query = `limit=1000&cursor=${next_cursor}`
    }
    expect(seen).to.have.length(20_000)
    expect(new Set(seen).size).to.equal(20_000)
    expect(seen.slice(0, 4)).to.deep.equal(['b19998', 'b19999', 'b20000', 'b19995'])
    const series = await list('builder=many&limit=2')
    const rest = await list(`builder=many&limit=2&cursor=${series.next_cursor}`)
    expect([...series.builders, ...rest.builders].map(({ day: at }) => at)).to.deep.equal([
      ...['1972-06-19', '1972-06-18', '1972-06-17', '1972-06-16'],
    ])
    const explained = createExplainedDb(exchange.url)
    const place = { volume: 3_000n * 10n ** 18n, builder: 'b9001' }
    expect(await buildersOfDay(explained.db, { day, limit: 20, after: place })).to.have.length(21)
    const days = { builder: 'many', day: null, limit: 20, before: 500 * DAY }
    expect(await daysOfBuilder(explained.db, days)).to.have.length(21)
    const statements = explained.drain()
    await explained.db.destroy()
    expect(statements.filter(({ pages }) => pages > 40)).to.deep.equal([])
  })

  it('when the query is not valid, it is 400 with field, expected and received', async () => {
    for (const [query, code, field] of [
      ['day=yesterday', 'INVALID_FIELD', 'day'],
      ['day=2026-02-30', 'INVALID_FIELD', 'day'],
      ['day=2026-13-01', 'INVALID_FIELD', 'day'],
      ['builder=UPPER', 'INVALID_FIELD', 'builder'],
      ['builder=', 'INVALID_FIELD', 'builder'],
      ['limit=1001', 'INVALID_FIELD', 'limit'],
      ['cursor=nonsense', 'INVALID_CURSOR', 'cursor'],
    ]) {
      const { status, body } = await exchange.get(null, `${PATH}?${query}`)
      expect([status, body.details.code, body.details.field], query).to.deep.equal([400, code, field])
      expect(body.details).to.include.keys('expected', 'received')
    }
    const { next_cursor } = await list('day=1970-01-04&limit=1')
    for (const other of [`day=1970-01-05&cursor=${next_cursor}`, `builder=many&cursor=${next_cursor}`])
      expect(codeOf(await exchange.get(null, `${PATH}?${other}`))).to.deep.equal([400, 'INVALID_CURSOR'])
  })
})

/** `GET /v0/fills/by-user` as CSV. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'
import {
  append,
  clearedRow,
  confirmedRow,
  settledRow,
  submittedRow,
  type Trade,
} from '../support/trade-rows.ts'

const HEADER =
  'fill_id,order_id,user_id,market_id,symbol,batch_id,part,action_id,side,forced,status,price,quantity,taker_quantity,' +
  'protection_price,fee,realized_pnl,available_margin_delta,tx_hash,block_number,created_at,updated_at,builder'
const COPIES = 2_300

describe('the fills of an account as CSV', function () {
  this.timeout(60_000)
  let exchange: ExchangeFixture
  let alice: User
  let bob: User

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    bob = await createUser(exchange.db, 'bob')
    const { body: buy } = await exchange.place(alice, { price: '99', quantity: '2' })
    const { body: sell } = await exchange.place(bob, { side: 'SHORT', price: '101', quantity: '1' })
    const trade: Trade = {
      batch: 1,
      price: 1_000,
      steps: 1_000,
      buy: { orderId: buy.order.order_id, user: alice, status: 'OPEN' },
      sell: { orderId: sell.order.order_id, user: bob, status: 'FILLED' },
    }
    await append(exchange, clearedRow(trade), submittedRow(trade), settledRow(trade), confirmedRow(trade))
    await exchange.project()
    // Three fills share each millisecond, so that pages end within one.
    await sql`
      insert into read.fills select (json_populate_record(f, json_build_object(
        'fill_id', f.fill_id || '-' || n, 'place', f.place + 10 + n, 'matched_at', f.matched_at - n / 3))).*
      from read.fills f, generate_series(1, ${COPIES}::integer) n where f.user_id = ${alice.userId}
    `.execute(exchange.db)
  })
  after(() => exchange.stop())

  const path = (user: User, query = '') => `/v0/fills/by-user/${user.userId}?${query}`
  const csv = (user: User, query = '', of = user) =>
    exchange.send(user, 'GET', path(of, query), undefined, { accept: 'text/csv' })
  const linesOf = (body: string): string[] => body.split('\r\n').slice(1, -1)

  it('when a client accepts CSV, it gets every fill of the list once, newest first, with exact amounts', async () => {
    const { status, headers, body } = await csv(alice)
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(headers['content-type']).to.equal('text/csv; charset=utf-8; header=present')
    expect(headers['content-disposition']).to.include('fills.csv')
    expect((body as string).split('\r\n')[0]).to.equal(HEADER)
    const lines = linesOf(body)
    const listed: Record<string, unknown>[] = []
    for (let cursor = ''; ; ) {
      const { body: page } = await exchange.get(alice, path(alice, `limit=1000${cursor}`))
      listed.push(...page.fills)
      if (page.next_cursor === null) break
      cursor = `&cursor=${page.next_cursor}`
    }
    expect(listed).to.have.length(COPIES + 1)
    expect(lines.map((line) => line.split(',')[0])).to.deep.equal(listed.map(({ fill_id }) => fill_id))
    const [first, fill] = [lines[0]?.split(',') ?? [], listed[0] ?? {}]
    HEADER.split(',').forEach((name, at) => {
      const value = fill[name]
      if (typeof value === 'number') expect(Number(first[at]), name).to.equal(value)
      else expect(first[at], name).to.equal(String(value ?? ''))
    })
  })

  it('when a market, a side, times and a limit are given, list and file have the same fills', async () => {
    const [newest] = (await exchange.get(alice, path(alice, 'limit=1'))).body.fills
    for (const query of ['limit=7', 'side=SHORT', 'market_id=2', `to=${newest.created_at}&limit=1000`]) {
      const { body } = await exchange.get(
        alice,
        path(alice, query.includes('limit') ? query : `${query}&limit=1000`),
      )
      const ids = body.fills.map(({ fill_id }: { fill_id: string }) => fill_id)
      expect(
        linesOf((await csv(alice, query)).body).map((line) => line.split(',')[0]),
        query,
      ).to.deep.equal(ids)
    }
  })

  it('when the fills are those of another account, the file is refused, as JSON', async () => {
    const { status, body } = await csv(bob, '', alice)
    expect([status, body.details.code]).to.deep.equal([403, 'NOT_YOURS'])
    expect(linesOf((await csv(bob)).body)).to.have.length(1)
  })
})

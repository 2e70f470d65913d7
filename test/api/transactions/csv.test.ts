/** `GET /v0/account/transactions` as CSV, and its range of times. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { csvLine, prefersCsv } from '../../../api/wire/csv.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'

const PATH = '/v0/account/transactions'
const HEADER =
  'id,transaction_type,amount,available_margin_delta,funding_payment_delta,asset,market_id,market_symbol,tx_hash,log_index,block_number,created_at'

describe('the transactions of an account as CSV', function () {
  this.timeout(60_000)
  let exchange: ExchangeFixture
  let alice: User

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    await sql`
      insert into read.ledger_transactions
      select '0x' || lpad(n::text, 6, '0'), ${alice.userId}, case when n % 2 = 0 then 'add_margin' else 'remove_margin' end, 1,
        n::numeric * 1500000000000000000, case when n % 2 = 0 then -n::numeric else n end * 1500000000000000000, '0xab', n, n, (n / 3) * 1000::bigint from generate_series(1, 2500) n
    `.execute(exchange.db)
  })
  after(() => exchange.stop())

  const csv = (query = '', accept = 'text/csv') =>
    exchange.send(alice, 'GET', `${PATH}?${query}`, undefined, { accept })
  const list = async (query: string): Promise<Record<string, unknown>[]> =>
    (await exchange.get(alice, `${PATH}?${query}`)).body.transactions

  it('when a client accepts CSV, it gets every transaction of the list, newest first, with exact amounts', async () => {
    const { status, headers, body } = await csv()
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(headers['content-type']).to.equal('text/csv; charset=utf-8; header=present')
    expect(headers.vary).to.include('Accept')
    const [header, ...lines] = (body as string).split('\r\n')
    expect([header, lines.pop()]).to.deep.equal([HEADER, ''])
    expect(lines).to.have.length(2_500)
    const all: Record<string, unknown>[] = []
    for (let cursor = ''; ; ) {
      const page = await list(`limit=1000${cursor}`)
      all.push(...page)
      const last = page.at(-1)
      if (last === undefined) break
      cursor = `&cursor_created_at=${last.created_at}&cursor_id=${last.id}`
    }
    const [first, other] = [lines[0]?.split(',') ?? [], all[0] ?? {}]
    expect([first[0], first[11]]).to.deep.equal([other.id, other.created_at])
    expect(lines.map((line) => line.split(',')[0])).to.deep.equal(all.map(({ id }) => id))
    expect(first.slice(2, 4)).to.deep.equal(['3750', '-3750'])
    expect(lines[1]?.split(',').slice(2, 4)).to.deep.equal(['3748.5', '3748.5'])
    expect(first.slice(4, 9)).to.deep.equal(['', 'USDM', '1', 'BTC-PERP', '0xab'])
  })

  it('when times and a limit are given, list and file have the same transactions of that time', async () => {
    const [from, to] = ['1970-01-01T00:03:00.000Z', '1970-01-01T00:10:00Z']
    const range = `from=${from}&to=${to}&transaction_type=add_margin&limit=7`
    const listed = await list(range)
    const times = listed.map(({ created_at }) => created_at)
    expect(times[0]).to.equal('1970-01-01T00:09:59.000Z')
    const lines = ((await csv(range)).body as string).split('\r\n').slice(1, -1)
    expect(lines.map((line) => line.split(',')[0])).to.deep.equal(listed.map(({ id }) => id))
    expect(lines).to.have.length(7)
    const oldest = await list(`from=${from}&to=1970-01-01T00:03:02Z`)
    expect(new Set(oldest.map(({ created_at }) => created_at))).to.deep.equal(
      new Set(['1970-01-01T00:03:01.000Z', from]),
    )
    expect(await list(`from=${to}&to=${from}`)).to.deep.equal([])
    for (const [query, field] of [
      ['from=1970-02-30T25:00:00Z', 'from'],
      ['to=tomorrow', 'to'],
    ]) {
      const { status, body } = await csv(query)
      expect([status, body.details.code, body.details.field]).to.deep.equal([400, 'INVALID_FIELD', field])
    }
  })

  it('when an account reads a file, it cannot begin a second one until the first ends', async () => {
    const answers = await Promise.all([csv(), csv(), csv('limit=1')])
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 429, 429])
    const refused = answers.find(({ status }) => status === 429)
    expect(refused?.body.details.code).to.equal('EXPORT_RUNNING')
    expect(refused?.headers['retry-after']).to.equal('1')
    expect((await csv('limit=1')).status).to.equal(200)
  })

  it('when a client asks for the headers only, or leaves before the end, the account can read another file', async () => {
    const headers = { authorization: `Key ${alice.apiKey}`, accept: 'text/csv' }
    const head = await exchange.api.app.inject({ method: 'HEAD', url: PATH, headers })
    expect([head.statusCode, head.body]).to.deep.equal([200, ''])
    const base = await exchange.api.app.listen({ port: 0, host: '127.0.0.1' })
    const leaving = new AbortController()
    const answer = await fetch(`${base}${PATH}`, { headers, signal: leaving.signal })
    expect(answer.status).to.equal(200)
    leaving.abort()
    for (let tries = 0; tries < 50 && (await csv('limit=1')).status !== 200; tries++)
      await new Promise((resolve) => setTimeout(resolve, 20))
    expect((await csv('limit=1')).status).to.equal(200)
  })

  it('when a request fails, its error is JSON and ends the file', async () => {
    const { status, headers } = await csv('limit=0')
    expect([status, headers['content-type']]).to.deep.equal([400, 'application/json; charset=utf-8'])
    expect((await csv('read_after_shard_id=accounts.1')).status).to.equal(400)
    expect((await csv()).status).to.equal(200)
  })

  it('when a text could be a formula or has separators, its cell is quoted and no formula', () => {
    expect(
      csvLine(['=SUM(A1)', '+1', '-1', '@x', '\tx', 'a"b', 'a,b', 'a\r\nb', null, 7, { decimal: '-1.5' }]),
    ).to.equal('\'=SUM(A1),\'+1,\'-1,\'@x,\'\tx,"a""b","a,b","a\r\nb",,7,-1.5\r\n')
  })

  it('when an Accept header names several types, the one with the highest quality counts, of equals the first', () => {
    const headers = {
      'text/csv': true,
      'text/csv;q=0.5, application/json': false,
      'application/json;q=0.5, text/csv;q=0.6': true,
      'text/csv, */*;q=0.1': true,
      'application/json, text/csv': false,
      'text/csv;q=0': false,
      'text/html, */*': false,
      ';;,q=,': false,
      '': false,
    }
    for (const [header, expected] of Object.entries(headers))
      expect(prefersCsv(header), header).to.equal(expected)
    expect(prefersCsv(undefined)).to.equal(false)
  })
})

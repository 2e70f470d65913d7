/** The files of the public history: their list, their content, and what keeps them from changing. */
import { createHash } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import {
  batchesOfDay,
  fillsOfDay,
  type HistoryBatch,
  type HistoryFill,
  historyDays,
} from '../../../api/history/query.ts'
import { createExplainedDb } from '../../support/explained-db.ts'
import { e18 } from '../../support/markets.ts'
import { codeOf, type ExchangeFixture, startExchange, startSecondApi } from '../support/exchange-fixture.ts'
import { MarketHistory } from '../support/market-history.ts'
import { append, confirmedRow } from '../support/trade-rows.ts'

const DAY = 86_400_000
const TODAY = Math.floor(Date.now() / DAY) * DAY
/** Days with events, all of which are final; the day between them is empty. */
const [FIRST, EMPTY, SECOND] = [TODAY - 5 * DAY, TODAY - 4 * DAY, TODAY - 3 * DAY]
const UNSETTLED = TODAY - 2 * DAY
const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)
const iso = (at: number): string => new Date(at).toISOString()
const pathOf = (kind: string, day: number, market = 1): string =>
  `/v0/history/${kind}/${market}/${dayOf(day)}.csv.gz`
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

describe('the files of the public history', function () {
  this.timeout(120_000)
  let exchange: ExchangeFixture

  const fetchFile = async (
    { api }: ExchangeFixture,
    path: string,
    headers = {},
    method: 'GET' | 'HEAD' = 'GET',
  ) => {
    const answer = await api.app.inject({ method, url: path, headers })
    return { status: answer.statusCode, headers: answer.headers, bytes: answer.rawPayload }
  }
  const linesOf = async (path: string, from = exchange): Promise<string[]> => {
    const { status, bytes } = await fetchFile(from, path)
    expect(status, `${path} ${bytes.toString('utf8', 0, 300)}`).to.equal(200)
    return gunzipSync(bytes).toString().split('\r\n').slice(0, -1)
  }
  const list = async (query = '', from = exchange) => {
    const answer = await from.get(null, `/v0/history?${query}`)
    expect(answer.status, JSON.stringify(answer.body)).to.equal(200)
    return answer.body
  }
  const refusal = async (path: string, from = exchange) => {
    const { status, bytes } = await fetchFile(from, path)
    const { details } = JSON.parse(bytes.toString())
    return { status, ...details }
  }
  /** A second api that has no file yet. */
  async function withSecondApi(env: Record<string, string>, use: (second: ExchangeFixture) => Promise<void>) {
    const second = await startSecondApi(exchange, env)
    try {
      await use(second)
    } finally {
      await second.stop()
    }
  }

  before(async () => {
    exchange = await startExchange()
    const history = await MarketHistory.open(exchange)
    await history.prices(FIRST + 500, '100', '100')
    await history.batch({ at: FIRST + 1_000, price: 1_000, steps: 100 })
    await history.batch({ at: FIRST + 61_000, price: 1_010, steps: 50 })
    await history.batch({ at: FIRST + 62_000, price: 990, steps: 20, stage: 'VOIDED' })
    await history.batch({ at: SECOND, price: 1_005, steps: 10 })
    const trade = await history.batch({ at: UNSETTLED + 1, price: 1_005, steps: 10, stage: 'MINED' })
    const rate = { rate: '7', funding_index: '-3', oracle_price: `${e18('100')}` }
    const place = { block: 1, tx_hash: '0xf', log_index: 0 }
    const times = (at: number) => ({ at, as_of: at, valid_until: at + 3_600_000, oracle_at: at - 1 })
    const update = (action_id: number, at: number, rollback = false) =>
      append(exchange, { kind: 'funding_updated', rollback, action_id, ...times(at), ...rate, ...place })
    await update(21, FIRST + 2_000)
    await update(22, FIRST + 3_000)
    await update(22, FIRST + 3_000, true)
    await exchange.project()
    confirmUnsettled = () => append(exchange, confirmedRow(trade))
  })
  let confirmUnsettled: () => Promise<unknown>
  after(() => exchange.stop())

  it('when a day is final, each kind has its rows in their order, with exact decimals', async () => {
    const tx = '0xabc'
    expect(await linesOf(pathOf('fills', FIRST))).to.deep.equal([
      'fill_id,batch_id,part,side,forced,price,quantity,taker_quantity,tx_hash,block_number,created_at',
      `1-1-1-0,1,1,LONG,false,100,0.1,0,${tx}1,7,${iso(FIRST + 1_000)}`,
      `1-1-1-1,1,1,SHORT,false,100,0.1,0.1,${tx}1,7,${iso(FIRST + 1_000)}`,
      `1-2-1-0,2,1,LONG,false,101,0.05,0,${tx}2,7,${iso(FIRST + 61_000)}`,
      `1-2-1-1,2,1,SHORT,false,101,0.05,0.05,${tx}2,7,${iso(FIRST + 61_000)}`,
    ])
    const auctions = await linesOf(pathOf('auctions', FIRST))
    expect(auctions.map((line) => line.split(',').slice(0, 7).join())).to.deep.equal([
      'batch_id,as_of,status,price,volume,filled_volume,fills',
      `1,${iso(FIRST + 1_000)},SETTLED,100,0.1,0.1,2`,
      `2,${iso(FIRST + 61_000)},SETTLED,101,0.05,0.05,2`,
      `3,${iso(FIRST + 62_000)},VOIDED,99,0.02,0,0`,
    ])
    expect(await linesOf(pathOf('candles', FIRST))).to.deep.equal([
      'start,open,high,low,close,volume,notional,trades,fills',
      `${iso(FIRST)},100,100,100,100,0.1,10,1,2`,
      `${iso(FIRST + 60_000)},101,101,101,101,0.05,5.05,1,2`,
    ])
    expect(await linesOf(pathOf('funding', FIRST))).to.deep.equal([
      'action_id,effective_at,valid_until,rate_per_step,funding_index,oracle_price,oracle_price_at,tx_hash',
      `21,${iso(FIRST + 2_000)},${iso(FIRST + 3_602_000)},0.000000000000000007,-0.000000000000000003,100,${iso(FIRST + 1_999)},0xf`,
    ])
  })

  it('when a batch is at midnight, it belongs to the day that begins; a day without events has a header only', async () => {
    expect(await linesOf(pathOf('fills', SECOND))).to.have.length(3)
    for (const kind of ['fills', 'auctions', 'candles', 'funding'])
      expect(await linesOf(pathOf(kind, EMPTY)), kind).to.have.length(1)
  })

  it('when a file is served, its digest is its tag, caches may keep it, and its list names it', async () => {
    const path = pathOf('fills', FIRST)
    const { headers, bytes } = await fetchFile(exchange, path)
    expect(headers).to.include({
      ...{
        etag: `"${sha256(bytes)}"`,
        'content-type': 'application/gzip',
        'content-length': String(bytes.length),
      },
      'content-disposition': `attachment; filename="fills-1-${dayOf(FIRST)}.csv.gz"`,
    })
    expect(headers['cache-control']).to.match(/^public, max-age=\d+, immutable$/)
    // No time of modification.
    expect(bytes.readUInt32LE(4)).to.equal(0)
    const { files } = await list(`market_id=1&kind=fills&from=${dayOf(FIRST)}&to=${dayOf(EMPTY)}`)
    expect(files).to.deep.equal([
      {
        kind: 'fills',
        market_id: 1,
        symbol: 'BTC-PERP',
        day: dayOf(FIRST),
        path,
        rows: 4,
        size: bytes.length,
        sha256: sha256(bytes),
        content_sha256: sha256(gunzipSync(bytes)),
      },
    ])
    const known = await fetchFile(exchange, path, { 'if-none-match': String(headers.etag) })
    expect([known.status, known.bytes.length, known.headers.etag]).to.deep.equal([304, 0, headers.etag])
    const other = await fetchFile(exchange, path, { 'if-none-match': '"other"' })
    expect(other.status).to.equal(200)
    const head = await fetchFile(exchange, path, {}, 'HEAD')
    expect([head.status, head.bytes.length, head.headers.etag]).to.deep.equal([200, 0, headers.etag])
    expect((await fetchFile(exchange, path)).bytes.equals(bytes), 'after a reader that left').to.equal(true)
  })

  it('when a day is not final, it is 404 HISTORY_NOT_FINAL with the time from which it can be requested', async () => {
    const today = await refusal(pathOf('fills', TODAY))
    expect([today.status, today.code, today.field, today.received]).to.deep.equal([
      ...[404, 'HISTORY_NOT_FINAL', 'day', dayOf(TODAY)],
    ])
    expect(today.available_at).to.equal(iso(TODAY + DAY + 3_600_000))
    expect(today.nearest_valid).to.equal(dayOf(SECOND))
    const unsettled = await refusal(pathOf('fills', UNSETTLED))
    expect([unsettled.status, unsettled.code]).to.deep.equal([404, 'HISTORY_NOT_FINAL'])
    expect((await list('market_id=1')).files[0].day).to.equal(dayOf(SECOND))
    await confirmUnsettled()
    // Its confirmation is in the journal, but not in the read model.
    expect((await refusal(pathOf('fills', UNSETTLED))).code).to.equal('HISTORY_NOT_FINAL')
    await exchange.project()
    expect(await linesOf(pathOf('fills', UNSETTLED))).to.have.length(3)
    expect((await list('market_id=1')).files[0].day >= dayOf(UNSETTLED)).to.equal(true)
  })

  it('when the chain was not read since the day ended, the day is not final', async () => {
    const [day] = await historyDays(exchange.db, { now: Date.now(), graceMs: 0 }, 1)
    await sql`update chain_progress set completed_at = ${UNSETTLED}`.execute(exchange.db)
    await sql`update history_files set day = day - 1000 * ${DAY}::bigint`.execute(exchange.db)
    const [stopped] = await historyDays(exchange.db, { now: Date.now(), graceMs: 0 }, 1)
    await sql`update chain_progress set completed_at = ${Date.now()}`.execute(exchange.db)
    await sql`update history_files set day = day + 1000 * ${DAY}::bigint`.execute(exchange.db)
    expect(day?.finalUntil).to.be.above(TODAY - DAY)
    expect(stopped?.finalUntil).to.equal(UNSETTLED)
  })

  it('when a market has no file of the day, the answer says why and names the nearest one', async () => {
    const before = await refusal(pathOf('fills', FIRST - DAY))
    expect([before.status, before.code, before.nearest_valid]).to.deep.equal([
      ...[404, 'HISTORY_BEFORE_LISTING', dayOf(FIRST)],
    ])
    expect(before.expected).to.include({ first: dayOf(FIRST) })
    expect((await refusal(pathOf('fills', 0))).code).to.equal('HISTORY_BEFORE_LISTING')
    expect((await refusal(pathOf('fills', FIRST, 3))).code).to.equal('HISTORY_BEFORE_LISTING')
    const unknown = await refusal(pathOf('fills', FIRST, 99))
    expect([unknown.status, unknown.code]).to.deep.equal([404, 'MARKET_NOT_FOUND'])
    await withSecondApi({ HISTORY_RETENTION_DAYS: '4' }, async (second) => {
      const expired = await refusal(pathOf('fills', FIRST), second)
      expect([expired.status, expired.code, expired.nearest_valid]).to.deep.equal([
        ...[404, 'HISTORY_EXPIRED', dayOf(EMPTY)],
      ])
      expect((await refusal(pathOf('fills', FIRST - DAY), second)).code).to.equal('HISTORY_BEFORE_LISTING')
      const { files, retention_days } = await list('market_id=1&limit=1000', second)
      expect([files.at(-1).day, retention_days]).to.deep.equal([dayOf(EMPTY), 4])
    })
    const end = {
      how: 'frozen',
      price: '1',
      price_at: 1,
      ended_at: SECOND + 5,
      pool: '0',
      deficit: '0',
      haircut: null,
    }
    const set = (ended: string | null) =>
      exchange.db.updateTable('markets').set({ ended }).where('market_id', '=', 1).execute()
    await set(JSON.stringify(end))
    const ended = await refusal(pathOf('candles', UNSETTLED))
    expect([ended.status, ended.code, ended.nearest_valid]).to.deep.equal([
      404,
      'HISTORY_AFTER_END',
      dayOf(SECOND),
    ])
    expect(await linesOf(pathOf('candles', SECOND))).to.have.length(2)
    await set(null)
  })

  it('when the request is not valid, it is 400 with field, expected and received', async () => {
    for (const [path, field] of [
      ['/v0/history/fills/1/yesterday.csv.gz', 'day'],
      ['/v0/history/fills/1/2026-02-30.csv.gz', 'day'],
      ['/v0/history/fills/1/2026-11-2.csv.gz', 'day'],
      ['/v0/history/fills/1/%2e%2e%2f2026-11-22.csv.gz', 'day'],
      ['/v0/history/trades/1/2026-11-22.csv.gz', 'kind'],
      ['/v0/history/fills/0/2026-11-22.csv.gz', 'market_id'],
      ['/v0/history/fills/BTC/2026-11-22.csv.gz', 'market_id'],
    ] as const) {
      const refused = await refusal(path)
      expect([refused.status, refused.code, refused.field], path).to.deep.equal([400, 'INVALID_FIELD', field])
      expect(refused).to.include.keys('expected', 'received')
    }
    expect((await refusal(`/v0/history/fills/1/${dayOf(FIRST)}.csv`)).code).to.equal('ROUTE_NOT_FOUND')
    const { next_cursor } = await list('limit=1')
    const forged = (text: string) => Buffer.from(text).toString('base64url')
    for (const [query, code, field] of [
      ['kind=trades', 'INVALID_FIELD', 'kind'],
      ['market_id=0', 'INVALID_FIELD', 'market_id'],
      ['from=yesterday', 'INVALID_FIELD', 'from'],
      ['to=2026-02-30', 'INVALID_FIELD', 'to'],
      ['limit=1001', 'INVALID_FIELD', 'limit'],
      ['cursor=nonsense', 'INVALID_CURSOR', 'cursor'],
      [`cursor=${next_cursor}x`, 'INVALID_CURSOR', 'cursor'],
      [`cursor=${forged(`history:${TODAY}:1-trades`)}`, 'INVALID_CURSOR', 'cursor'],
      [`cursor=${forged(`history:${TODAY + 1}:1-fills`)}`, 'INVALID_CURSOR', 'cursor'],
      [`cursor=${forged(`builders:${TODAY}:1-fills`)}`, 'INVALID_CURSOR', 'cursor'],
    ]) {
      const { status, body } = await exchange.get(null, `/v0/history?${query}`)
      expect([status, body.details.code, body.details.field], query).to.deep.equal([400, code, field])
      expect(body.details).to.include.keys('expected', 'received')
    }
    const far = forged('history:999993600000000:1-fills')
    expect(codeOf(await exchange.get(null, `/v0/history?cursor=${far}`))[0]).to.equal(200)
    expect((await list('market_id=99')).files).to.deep.equal([])
    expect((await list(`from=${dayOf(TODAY)}&to=${dayOf(FIRST)}`)).files).to.deep.equal([])
  })

  it('when the list is read in pages, each file is in it once, the newest day first', async () => {
    const whole = (await list('limit=1000')).files
    const pages: { readonly path: string }[] = []
    for (let query = 'limit=3'; ; ) {
      const { files, next_cursor } = await list(query)
      pages.push(...files)
      if (next_cursor === null) break
      query = `limit=3&cursor=${next_cursor}`
    }
    expect(pages).to.deep.equal(whole)
    expect(new Set(pages.map(({ path }) => path)).size).to.equal(whole.length)
    expect(whole.slice(0, 4).map(({ kind }: { readonly kind: string }) => kind)).to.deep.equal([
      ...['fills', 'auctions', 'candles', 'funding'],
    ])
    for (const { path, content_sha256 } of whole) {
      const { status, bytes } = await fetchFile(exchange, path)
      expect(status, path).to.equal(200)
      if (content_sha256 !== null) expect(sha256(gunzipSync(bytes)), path).to.equal(content_sha256)
    }
  })

  it('when two apis build a file at once, both serve the same bytes and one row is stored', async () => {
    await sql`delete from history_files`.execute(exchange.db)
    const path = pathOf('auctions', FIRST)
    await withSecondApi({}, (one) =>
      withSecondApi({}, async (other) => {
        const files = await Promise.all([one, other, one, other].map((from) => fetchFile(from, path)))
        expect(new Set(files.map(({ status, bytes }) => `${status} ${sha256(bytes)}`)).size).to.equal(1)
        expect(files[0]?.status).to.equal(200)
      }),
    )
    expect(await exchange.db.selectFrom('history_files').selectAll().execute()).to.have.length(1)
  })

  it('when a later build differs from the first, it is 500 HISTORY_CHANGED and never served', async () => {
    const path = pathOf('fills', FIRST)
    await linesOf(path)
    const change = (steps: number) =>
      sql`update read.fills set steps = ${steps} where market_id = 1 and batch_id = 1`.execute(exchange.db)
    await sql`delete from history_files`.execute(exchange.db)
    await withSecondApi({}, async (second) => void (await linesOf(path, second)))
    await change(101)
    await withSecondApi({}, async (second) => {
      const refused = await refusal(path, second)
      expect([refused.status, refused.code]).to.deep.equal([500, 'HISTORY_CHANGED'])
      expect(refused.content_sha256).to.not.equal(refused.first_content_sha256)
      // The file that was served once is still known to be current.
      const [first] = await exchange.db.selectFrom('history_files').selectAll().execute()
      expect(first?.content_sha256).to.equal(refused.first_content_sha256)
      await change(100)
      expect(await linesOf(path, second)).to.have.length(5)
    })
  })

  it('when another compressor made the first file, the same content is served and the list names the new digest', async () => {
    const path = pathOf('fills', FIRST)
    await sql`update history_files set sha256 = 'other', size = 1`.execute(exchange.db)
    await withSecondApi({}, async (second) => {
      const { status, bytes } = await fetchFile(second, path)
      expect(status).to.equal(200)
      const { files } = await list(`kind=fills&market_id=1&from=${dayOf(FIRST)}&to=${dayOf(EMPTY)}`)
      expect([files[0].sha256, files[0].size]).to.deep.equal([sha256(bytes), bytes.length])
    })
  })

  it('when a build takes longer than a request may wait, it is 503 with Retry-After, and the build continues', async () => {
    await withSecondApi({ HISTORY_WAIT_MS: '0' }, async (second) => {
      const answers = await Promise.all(
        ['fills', 'auctions', 'candles', 'funding'].map((kind) => fetchFile(second, pathOf(kind, FIRST))),
      )
      expect(answers.map(({ status }) => status)).to.deep.equal([503, 503, 503, 503])
      expect(answers.map(({ headers }) => headers['retry-after'])).to.deep.equal(['5', '5', '5', '5'])
      for (let tries = 0; tries < 200; tries++) {
        if ((await fetchFile(second, pathOf('funding', FIRST))).status === 200) return
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      expect.fail('the builds do not end')
    })
  })

  it('when files need more room than there is, those requested longest ago are built again', async () => {
    await withSecondApi({ HISTORY_KEPT_MB: '0' }, async (second) => {
      const paths = [pathOf('fills', FIRST), pathOf('auctions', FIRST)]
      for (const path of [...paths, ...paths]) expect((await fetchFile(second, path)).status).to.equal(200)
    })
  })

  it('when a day has many rows, all of them are in the file, and each page reads few database pages', async () => {
    const first = 1_000
    const busy = FIRST + 6 * 3_600_000
    await sql`
      insert into read.batches select copy.*
      from generate_series(1, 3000) n, (select * from read.batches where market_id = 1 and batch_id = 1) b,
        jsonb_populate_record(null::read.batches, to_jsonb(b) ||
          jsonb_build_object('batch_id', ${first}::bigint + n, 'as_of', ${busy}::bigint + n)) copy
    `.execute(exchange.db)
    await sql`
      insert into read.fills select copy.*
      from generate_series(10, 30009) n, (select * from read.fills where market_id = 1 and batch_id = 1 limit 1) f,
        jsonb_populate_record(null::read.fills, to_jsonb(f) ||
          jsonb_build_object('fill_id', 'x' || n, 'batch_id', ${first}::bigint + n / 10, 'place', n % 10,
            'matched_at', ${busy}::bigint + n / 10)) copy
    `.execute(exchange.db)
    await sql`delete from history_files`.execute(exchange.db)
    await sql`analyze`.execute(exchange.db)
    await withSecondApi({}, async (second) => {
      const lines = await linesOf(pathOf('fills', FIRST), second)
      expect(lines).to.have.length(1 + 4 + 30_000)
      expect(new Set(lines).size).to.equal(lines.length)
      expect(await linesOf(pathOf('auctions', FIRST), second)).to.have.length(1 + 3 + 3_000)
    })
    const explained = createExplainedDb(exchange.url)
    const key = { marketId: 1, day: FIRST } as const
    const fillsAfter = (after: HistoryFill | null) =>
      fillsOfDay(explained.db, { ...key, kind: 'fills' }, { limit: 1_000, after })
    const batchesAfter = (after: HistoryBatch | null) =>
      batchesOfDay(explained.db, { ...key, kind: 'auctions' }, { limit: 1_000, after })
    const page = await fillsAfter(null)
    const next = await fillsAfter(page[999] as HistoryFill)
    const late = await fillsAfter({ ...(next[999] as HistoryFill), batch_id: first + 2_900, place: 9 })
    expect([page.length, next.length, late.length]).to.deep.equal([1_000, 1_000, 1_000])
    await batchesAfter((await batchesAfter(null))[999] as HistoryBatch)
    const statements = explained.drain()
    await explained.db.destroy()
    // A row each, by its index.
    expect(statements.map(({ pages }) => pages).filter((pages) => pages > 2_500)).to.deep.equal([])
  })
})

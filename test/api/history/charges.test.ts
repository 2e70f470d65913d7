/** A file of the public history costs reads by its size, so that its clients keep to the processor time of their limits. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { budgetOf } from '../support/cost-budget.ts'
import { createUser, type ExchangeFixture, signedBody, startExchange } from '../support/exchange-fixture.ts'
import { MarketHistory } from '../support/market-history.ts'
import { ProcessorTime } from '../support/processor-time.ts'

const DAY = 86_400_000
const FIRST = Math.floor(Date.now() / DAY) * DAY - 3 * DAY
/** Random hashes of transactions do not compress: the file has more than 32 bytes per fill. */
const FILLS = 40_000
const PATH = `/v0/history/fills/1/${new Date(FIRST).toISOString().slice(0, 10)}.csv.gz`
const BYTES_PER_READ = 256 * 1024

describe('the cost of a history file', function () {
  this.timeout(300_000)
  let exchange: ExchangeFixture

  before(async () => {
    exchange = await startExchange()
    const history = await MarketHistory.open(exchange)
    await history.prices(FIRST + 500, '100', '100')
    await history.batch({ at: FIRST + 1_000, price: 1_000, steps: 100 })
    await history.batch({ at: FIRST + 2 * DAY, price: 1_000, steps: 1 })
    await exchange.project()
    await sql`
      insert into read.fills
      select (jsonb_populate_record(null::read.fills, to_jsonb(f) || jsonb_build_object(
        'fill_id', '1-1-1-' || n, 'place', n, 'tx_hash', '0x' || md5(random()::text) || md5(random()::text)
      ))).*
      from (select * from read.fills where batch_id = 1 limit 1) f, generate_series(100, ${FILLS}::int) n
    `.execute(exchange.db)
  })
  after(() => exchange.stop())

  const request = (method: 'GET' | 'HEAD', headers = {}) =>
    exchange.api.app.inject({ method, url: PATH, headers })

  it('when a built file is sent, it takes no more than its reads of the limit allow', async () => {
    let answer = await request('GET')
    while (answer.statusCode === 503) answer = await request('GET')
    const { hash, body } = signedBody(await createUser(exchange.db, 'alice'))
    const signature = Buffer.from(String(body.signature).slice(2, 130), 'hex')
    const time = new ProcessorTime({ digest: Buffer.from(hash.slice(2), 'hex'), signature })
    await time.start()
    const cost = await time.of(() => request('GET'))
    const reads = 1 + Math.floor(answer.rawPayload.length / BYTES_PER_READ)
    expect(answer.statusCode).to.equal(200)
    expect(cost, `${reads} reads`).to.be.below(reads * budgetOf('reads'))
  })

  it('when a file is sent, it costs a read for each 256 KiB, and none for a HEAD request', async () => {
    let built = await request('HEAD')
    // The build goes on after a request that waited for too long.
    while (built.statusCode === 503) built = await request('HEAD')
    const size = Number(built.headers['content-length'])
    expect(size).to.be.above(4 * BYTES_PER_READ)
    const remaining = async (): Promise<number> => {
      const { statusCode, headers } = await request('HEAD', { 'if-none-match': built.headers.etag })
      expect(statusCode).to.equal(304)
      return Number(headers['ratelimit-remaining'])
    }
    const spentBy = async (method: 'GET' | 'HEAD'): Promise<number> => {
      const before = await remaining()
      const { statusCode, rawPayload } = await request(method)
      expect([statusCode, rawPayload.length]).to.deep.equal([200, method === 'GET' ? size : 0])
      return before - (await remaining())
    }
    // The request itself and the second look. A window of the limit may end in between, so that some calls have spent less.
    const most = async (method: 'GET' | 'HEAD') =>
      Math.max(await spentBy(method), await spentBy(method), await spentBy(method))
    expect(await most('HEAD')).to.equal(2)
    expect(await most('GET')).to.equal(2 + Math.floor(size / BYTES_PER_READ))
  })
})

/** The files of the public history through the TypeScript client and the command line, from a listening api. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { Client } from '../../../client/client.ts'
import { PublicHistory } from '../../../client/public-history.ts'
import { runCli } from '../../cli/support/run-cli.ts'
import { type ExchangeFixture, startExchange } from '../support/exchange-fixture.ts'
import { MarketHistory } from '../support/market-history.ts'

const DAY = 86_400_000
const FIRST = Math.floor(Date.now() / DAY) * DAY - 3 * DAY
const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)
const RANGE = { from: dayOf(FIRST), to: dayOf(FIRST + DAY) }

describe('clients of the public history', function () {
  this.timeout(120_000)
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-history-'))
  let exchange: ExchangeFixture
  let url: string
  let history: PublicHistory

  before(async () => {
    exchange = await startExchange()
    const market = await MarketHistory.open(exchange)
    await market.prices(FIRST + 500, '100', '100')
    await market.batch({ at: FIRST + 1_000, price: 1_000, steps: 100 })
    await market.batch({ at: FIRST + 2 * DAY, price: 1_000, steps: 1 })
    await exchange.project()
    await exchange.api.app.listen({ port: 0, host: '127.0.0.1' })
    url = `http://127.0.0.1:${(exchange.api.app.server.address() as AddressInfo).port}`
    history = new PublicHistory(new Client({ baseUrl: url }))
  })
  after(async () => {
    rmSync(folder, { recursive: true })
    await exchange.stop()
  })

  it('when files are listed page by page, each kind of the day comes once', async () => {
    const kinds: string[] = []
    for await (const { kind, day } of history.files({ ...RANGE, limit: 1 })) {
      expect(day).to.equal(RANGE.from)
      kinds.push(kind)
    }
    expect(kinds).to.have.members(['fills', 'auctions', 'candles', 'funding'])
  })

  it('when a file is downloaded, its rows have the names of the columns, and another digest than the listed one is refused', async () => {
    const page = await history.page({ ...RANGE, kind: 'fills', marketId: 1 })
    const [file] = page.files
    if (file === undefined) throw new Error('the file of the fills is listed')
    const rows = await history.rows(file)
    expect(rows.map(({ fill_id, price }) => [fill_id, price])).to.deep.equal([
      ['1-1-1-0', '100'],
      ['1-1-1-1', '100'],
    ])
    const refused = await history
      .download({ ...file, content_sha256: '00'.repeat(32) })
      .catch((error) => error)
    expect(refused).to.include({ code: 'CLIENT_DIGEST_MISMATCH', retryable: false })
  })

  it('when the command line gets a file, it writes the content that it has listed, and names what is wrong with a day', async () => {
    const run = (...args: string[]) => runCli([...args, '--url', url, '--json'])
    const output = join(folder, 'fills.csv.gz')
    const get = (day: string) =>
      run('history', 'get', 'fills', day, '--market', 'BTC-PERP', '--output', output)
    const got = await get(RANGE.from)
    expect([got.code, JSON.parse(got.out).rows], got.err).to.deep.equal([0, 2])
    expect(gunzipSync(readFileSync(output)).toString()).to.match(/^fill_id,.*\r\n1-1-1-0,/)
    const list = await run('history', 'list', '--market', 'BTC-PERP', '--kind', 'fills', '--from', RANGE.from)
    expect(JSON.parse(list.out)).to.deep.include.members([
      { ...JSON.parse(list.out).find(({ day }: { day: string }) => day === RANGE.from), rows: 2 },
    ])
    writeFileSync(output, 'kept')
    const wrong = await get('2026-13-01')
    expect([wrong.code, wrong.err.includes('expected a day such as')]).to.deep.equal([2, true])
    const today = await get(dayOf(Date.now()))
    expect([today.code, today.err.includes('HISTORY_NOT_FINAL')], today.err).to.deep.equal([1, true])
    expect(readFileSync(output, 'utf8')).to.equal('kept')
  })
})

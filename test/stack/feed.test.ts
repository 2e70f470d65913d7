import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { createDb, createPool } from '../../db/client.ts'
import type { Address, MarketId, Millis, Price } from '../../domain/units.ts'
import { exclusively } from '../../stack/admin.ts'
import { replaceSource } from '../../stack/feed/run.ts'
import { summaryOf } from '../../stack/feed/summary.ts'
import { type Limits, type WatchedReport, wideMovesOf } from '../../stack/feed/watch.ts'
import { type PriceConfig, priceConfigOf } from '../../stack/price-config.ts'
import { e18 } from '../support/markets.ts'
import { freshDatabase } from '../support/postgres.ts'

/** The default limits of a market: 10 % after a second, and 2 % per second. */
const LIMITS: Limits = {
  maxAge: 10_000,
  move: { kind: 'perpetual', moveBase: 100_000n, moveSlope: 20_000n, moveWindow: 1_000 as Millis },
}
const report = (price: string, observedAt: number): WatchedReport => ({
  price: e18(price) as Price,
  observedAt: observedAt as Millis,
})

describe('stack/feed', () => {
  it('when reports move farther than the market accepts, the moves are counted with what was allowed', () => {
    const reports = [report('100', 0), report('106', 500), report('113', 1_000), report('113', 2_000)]
    expect(wideMovesOf(reports, LIMITS)).to.deep.equal([{ share: 0.066037, allowed: 0.06 }])
    expect(wideMovesOf([], LIMITS)).to.deep.equal([])
  })

  it('when a run ends, the summary counts readings, reports, halts by reason, and wide moves', () => {
    const run = {
      ...{ path: 'crash.csv.gz', speed: 60, symbol: 'BTC-PERP', readings: 3 },
      reports: [report('100', 0), report('68.5', 30_000)],
      halts: [
        { reason: 'MOVE_TOO_LARGE', ms: 4_000 },
        { reason: 'REPORT_STALE', ms: 1_500 },
        { reason: 'MOVE_TOO_LARGE', ms: 500 },
      ],
      wideMoves: [{ share: 0.315, allowed: 0.1 }],
    }
    expect(summaryOf(run).split('\n')).to.deep.equal([
      '',
      'feed        BTC-PERP from crash.csv.gz, speed 60',
      'readings    3 recorded prices',
      'reports     2 published in 30.0 s, from 68.5 to 100',
      'halts       MOVE_TOO_LARGE 2 (4.5 s), REPORT_STALE 1 (1.5 s)',
      'moves       1 beyond the allowed move, the widest 31.50 % from one report to the next',
    ])
  })

  it('when nothing was published, the summary says so', () => {
    const nothing = { path: 'p', speed: 1, symbol: 'X', readings: 0, reports: [], halts: [], wideMoves: [] }
    expect(summaryOf(nothing)).to.include('0 published in 0.0 s\nhalts       none\nmoves       0 beyond')
  })
})

describe('the price configuration of a running stack', function () {
  this.timeout(30_000)

  it('when another feed changes it at the same time, both recordings are in it, and both are taken out again', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'clearbatch-feed-'))
    const pricesFile = join(folder, 'prices.json')
    writeFileSync(pricesFile, JSON.stringify(priceConfigOf(`0x${'33'.repeat(20)}` as Address)))
    const db = createDb(createPool({ url: await freshDatabase(), connections: 4, name: 'feed test' }))
    const kinds = () =>
      (JSON.parse(readFileSync(pricesFile, 'utf8')) as PriceConfig).feeds.flatMap(({ sources }) =>
        (sources ?? []).map(({ kind }) => kind),
      )
    const before = kinds()
    let replaced: Promise<() => Promise<void>> | null = null
    await exclusively(db, 'stack prices', async () => {
      replaced = replaceSource({ db, pricesFile }, { marketId: 1 as MarketId }, { kind: 'recording' })
      await new Promise((resolve) => setTimeout(resolve, 200))
      expect(kinds(), 'while the other feed has the lock').to.deep.equal(before)
    })
    const [first, second] = [
      await (replaced as unknown as Promise<() => Promise<void>>),
      await replaceSource({ db, pricesFile }, { marketId: 2 as MarketId }, { kind: 'recording' }),
    ]
    expect(kinds().filter((kind) => kind === 'recording')).to.have.length(2)
    await Promise.all([first(), second()])
    expect(kinds()).to.deep.equal(before)
    await db.destroy()
    rmSync(folder, { recursive: true })
  })
})

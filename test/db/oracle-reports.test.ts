/** The state of the feeds in the database: the latest reports, those before them, and those that were used. */
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import {
  type FeedReport,
  keepReport,
  latestReport,
  publishReports,
  recordAbsences,
} from '../../db/oracle-reports.ts'
import type { JudgedReading } from '../../domain/prices/aggregate.ts'
import type { Feed } from '../../domain/prices/feed.ts'
import type { Millis, Price } from '../../domain/units.ts'
import { MarketFixture } from '../keeper/support/market-fixture.ts'
import { e18, perpetual } from '../support/markets.ts'

const AT = 1_800_000_000_000
const readings: readonly JudgedReading[] = [
  { source: 'a', reading: { price: e18('100'), observedAt: AT as Millis }, dropped: null, detail: null },
  { source: 'b', reading: null, dropped: 'NO_READING', detail: 'HTTP_500' },
]
const reportOf = (price: string, observedAt: number, feed: Feed = 'index'): FeedReport => ({
  marketId: 1,
  feed,
  report: { price: e18(price) as Price, observedAt: observedAt as Millis, signatures: '0xab' },
  readings,
})
const INDEX = { marketId: 1, feed: 'index' } as const

describe('db/oracle-reports', () => {
  let fixture: MarketFixture
  before(async () => {
    fixture = await MarketFixture.open(perpetual)
  })
  after(() => fixture.close())
  beforeEach(async () => {
    for (const table of ['oracle_reports', 'recent_reports', 'used_reports'] as const)
      await fixture.db.deleteFrom(table).execute()
  })
  const row = () =>
    fixture.db.selectFrom('oracle_reports').selectAll().where('feed', '=', 'index').executeTakeFirstOrThrow()

  it('when reports of several feeds are published, each is the latest of its feed', async () => {
    const stored = await publishReports(fixture.db, [reportOf('0', AT, 'session'), reportOf('100', AT)])
    expect(stored).to.have.deep.members([INDEX, { marketId: 1, feed: 'session' }])
    expect(await latestReport(fixture.db, INDEX)).to.deep.equal(reportOf('100', AT).report)
    expect(JSON.parse((await row()).readings)).to.have.length(2)
  })

  it('when a report is not newer than the stored one, it is dropped', async () => {
    await publishReports(fixture.db, [reportOf('100', AT)])
    expect(await publishReports(fixture.db, [reportOf('101', AT)])).to.deep.equal([])
    expect(await publishReports(fixture.db, [reportOf('102', AT - 1)])).to.deep.equal([])
    expect(await latestReport(fixture.db, INDEX)).to.deep.include({ price: e18('100'), observedAt: AT })
  })

  it('when a feed halts, its latest report is not used, and a newer report ends the halt', async () => {
    await publishReports(fixture.db, [reportOf('100', AT)])
    await recordAbsences(fixture.db, [{ ...INDEX, reason: 'SOURCES_DISAGREE', readings }])
    const halted = await row()
    expect(halted).to.include({ status: 'halted', reason: 'SOURCES_DISAGREE', observed_at: AT })
    expect(await latestReport(fixture.db, INDEX)).to.equal(null)

    await recordAbsences(fixture.db, [{ ...INDEX, reason: 'MOVE_TOO_LARGE', readings: [] }])
    expect(await row()).to.include({ reason: 'MOVE_TOO_LARGE', since: halted.since, readings: '[]' })
    await publishReports(fixture.db, [reportOf('101', AT + 500)])
    expect(await row()).to.include({ status: 'live', reason: null })
    expect(await latestReport(fixture.db, INDEX)).to.deep.include({ price: e18('101') })
  })

  it('when sources that disagreed fall silent, the feed stays halted until a new report', async () => {
    await publishReports(fixture.db, [reportOf('100', AT)])
    await recordAbsences(fixture.db, [{ ...INDEX, reason: 'SOURCES_DISAGREE', readings }])
    const { since } = await row()
    await recordAbsences(fixture.db, [{ ...INDEX, reason: 'TOO_FEW_SOURCES', readings }])
    expect(await row()).to.include({ status: 'halted', reason: 'TOO_FEW_SOURCES', since })
    expect(await latestReport(fixture.db, INDEX)).to.equal(null)
    await publishReports(fixture.db, [reportOf('100', AT + 500)])
    expect(await latestReport(fixture.db, INDEX)).to.not.equal(null)
  })

  it('when a feed only waits, its latest report is still used', async () => {
    await publishReports(fixture.db, [reportOf('100', AT)])
    await recordAbsences(fixture.db, [{ ...INDEX, reason: 'NO_QUORUM', readings }])
    expect(await row()).to.include({ status: 'waiting' })
    expect(await latestReport(fixture.db, INDEX)).to.deep.include({ observedAt: AT })
  })

  it('when a feed has never had a report, its row says why', async () => {
    await recordAbsences(fixture.db, [{ ...INDEX, reason: 'TOO_FEW_SOURCES', readings }])
    expect(await row()).to.include({ price: null, status: 'waiting', reason: 'TOO_FEW_SOURCES' })
    expect(await latestReport(fixture.db, INDEX)).to.equal(null)
    await publishReports(fixture.db, [reportOf('100', AT)])
    expect(await latestReport(fixture.db, INDEX)).to.deep.include({ observedAt: AT })
  })

  it('when a report is used after newer ones were published, it is kept with its readings', async () => {
    for (let count = 0; count < 300; count++)
      await publishReports(fixture.db, [reportOf('100', AT + 500 * count)])
    expect(await fixture.db.selectFrom('recent_reports').select('slot').execute()).to.have.length(128)

    const used = reportOf('100', AT + 500 * 200).report
    await fixture.db.transaction().execute(async (tx) => {
      await keepReport(tx, INDEX, used)
      await keepReport(tx, INDEX, used)
    })
    const kept = await fixture.db.selectFrom('used_reports').selectAll().execute()
    expect(kept.map(({ observed_at, price, signatures }) => [observed_at, price, signatures])).to.deep.equal([
      [used.observedAt, used.price, used.signatures],
    ])
    expect(JSON.parse(kept[0]?.readings ?? '')).to.deep.equal(JSON.parse(JSON.stringify(readings, text)))
  })
})

const text = (_key: string, value: unknown): unknown => (typeof value === 'bigint' ? value.toString() : value)

/** What readers see of a market's feeds: status, reason, sources, and the evidence of a report that was used. */
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { keepReport, publishReports, recordAbsences } from '../../../db/oracle-reports.ts'
import type { JudgedReading } from '../../../domain/prices/aggregate.ts'
import type { Millis, Price } from '../../../domain/units.ts'
import { e18 } from '../../support/markets.ts'
import { type ExchangeFixture, startExchange } from '../support/exchange-fixture.ts'

describe('the price feeds over REST', () => {
  let exchange: ExchangeFixture
  let now: number
  before(async () => {
    exchange = await startExchange({ ORACLE_MAX_AGE_MS: '10000' })
    await exchange.project()
  })
  after(() => exchange.stop())
  beforeEach(() => {
    now = Date.now()
  })

  const get = (path: string) => exchange.get(null, path)
  const readings = (): readonly JudgedReading[] => [
    {
      source: 'alpha',
      reading: { price: e18('101.5'), observedAt: now as Millis },
      dropped: null,
      detail: null,
    },
    { source: 'beta', reading: null, dropped: 'NO_READING', detail: 'HTTP_500' },
  ]
  const INDEX = { marketId: 1, feed: 'index' } as const
  const publish = async (observedAt = now) => {
    const report = {
      price: e18('101.5') as Price,
      observedAt: observedAt as Millis,
      signatures: '0xabcd',
    } as const
    await publishReports(exchange.db, [{ ...INDEX, report, readings: readings() }])
    return report
  }

  it('when a feed is live, market and oracle show its status and the readings of its sources', async () => {
    await publish()
    const shown = {
      status: 'live',
      reason: null,
      observed_at: new Date(now).toISOString(),
      sources: [
        {
          ...{ source: 'alpha', price: 101.5, price_e18_raw: e18('101.5').toString() },
          ...{ observed_at: new Date(now).toISOString(), dropped: null, detail: null },
        },
        {
          ...{ source: 'beta', price: null, price_e18_raw: null, observed_at: null },
          ...{ dropped: 'NO_READING', detail: 'HTTP_500' },
        },
      ],
    }
    const { body: market } = await get('/v0/markets/1')
    expect(market.oracle).to.deep.include(shown)
    const { body } = await get('/v0/markets/1/oracle')
    expect(body).to.include({ market_id: 1, symbol: 'BTC-PERP', evidence: null })
    expect(body.feeds).to.have.length(1)
    expect(body.feeds[0]).to.deep.include({ ...shown, feed: 'index', price: 101.5, signatures: '0xabcd' })
  })

  it('when a feed halts, the reason is readable, and the latest report stays visible', async () => {
    await publish()
    await recordAbsences(exchange.db, [{ ...INDEX, reason: 'SOURCES_DISAGREE', readings: readings() }])
    const { body } = await get('/v0/markets/1')
    expect(body.oracle).to.include({ status: 'halted', reason: 'SOURCES_DISAGREE' })
    expect(body.oracle.observed_at).to.equal(new Date(now).toISOString())
  })

  it('when the latest report is too old, the feed is stale', async () => {
    await exchange.db.deleteFrom('oracle_reports').where('market_id', '=', 1).execute()
    await publish(now - 10_500)
    const { body } = await get('/v0/markets/1/oracle')
    expect(body.feeds[0]).to.include({ status: 'stale', reason: 'REPORT_STALE', price: 101.5 })
  })

  it('when a market never had a price, its oracle is null and it has no feed', async () => {
    await exchange.db.deleteFrom('oracle_reports').where('market_id', '=', 2).execute()
    expect((await get('/v0/markets/2')).body.oracle).to.equal(null)
    expect((await get('/v0/markets/2/oracle')).body.feeds).to.deep.equal([])
  })

  it('when a session feed is shown, its value is a time', async () => {
    const endsAt = now + 3_600_000
    const report = { price: BigInt(endsAt) as Price, observedAt: now as Millis, signatures: '0x' } as const
    const calendar = [
      {
        source: 'calendar',
        reading: { price: BigInt(endsAt), observedAt: now as Millis },
        dropped: null,
        detail: null,
      },
    ]
    await publishReports(exchange.db, [{ marketId: 3, feed: 'session', report, readings: calendar }])
    const { body } = await get('/v0/markets/3/oracle')
    const session = body.feeds.find((one: { feed: string }) => one.feed === 'session')
    expect(session).to.include({
      price: null,
      session_ends_at: new Date(endsAt).toISOString(),
      status: 'live',
    })
    expect(session.sources[0]).to.include({ source: 'calendar', price: null })
  })

  it('when a report was used, it is found by its observation time after newer ones were published', async () => {
    now += 1_000
    const report = await publish()
    await exchange.db.transaction().execute((tx) => keepReport(tx, INDEX, report))
    const at = new Date(now).toISOString()
    now += 1_000
    await publish()
    const { body } = await get(`/v0/markets/1/oracle?observed_at=${at}`)
    expect(body.evidence).to.include({ feed: 'index', observed_at: at, price: 101.5, signatures: '0xabcd' })
    expect(body.evidence.sources.map(({ source }: { source: string }) => source)).to.deep.equal([
      'alpha',
      'beta',
    ])
    expect((await get(`/v0/markets/1/oracle?observed_at=${at}&feed=final`)).body.evidence).to.equal(null)
  })

  it('when the query is wrong, it is refused by name', async () => {
    expect((await get('/v0/markets/99/oracle')).status).to.equal(404)
    for (const [query, field] of [
      ['observed_at=yesterday', 'observed_at'],
      ['feed=mark', 'feed'],
      ['source=alpha', 'source'],
    ]) {
      const { status, body } = await get(`/v0/markets/1/oracle?${query}`)
      expect([status, body.details.field]).to.deep.equal([400, field])
    }
  })
})

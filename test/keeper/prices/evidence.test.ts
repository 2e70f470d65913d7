/** Every report that something was decided on is kept, with its signatures and the readings behind it. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { publishReports, recordAbsences } from '../../../db/oracle-reports.ts'
import type { SessionReport, UpdateFunding } from '../../../domain/actions/action.ts'
import { type MarketSpec, priceOf } from '../../../domain/market/market.ts'
import type { JudgedReading } from '../../../domain/prices/aggregate.ts'
import type { OracleReport } from '../../../domain/settlement/settlement.ts'
import type { HourlyFunding, Millis, Ticks } from '../../../domain/units.ts'
import { perpetual } from '../../support/markets.ts'
import { createAuction, createMarketMemory, createMarks } from '../support/engine-turns.ts'
import { MarketFixture, RULES, type Trader } from '../support/market-fixture.ts'

const spec: MarketSpec = { ...perpetual, fundingSession: true }
const READINGS: readonly JudgedReading[] = [
  { source: 'only', reading: null, dropped: 'NO_READING', detail: 'HTTP_500' },
]

describe('the evidence of used reports', () => {
  let fixture: MarketFixture
  let alice: Trader
  let bob: Trader
  let step: () => Promise<number | null>

  beforeEach(async () => {
    fixture = await MarketFixture.open(spec)
    alice = await fixture.trader('alice')
    bob = await fixture.trader('bob')
    const memory = createMarketMemory({ ...RULES, kind: spec.kind })
    const ports = fixture.turnPorts()
    const [marks, auction] = [createMarks(ports, spec, memory), createAuction(ports, spec, memory)]
    step = async () => {
      fixture.clock.value += 200
      await marks.update()
      return auction.run()
    }
    await publish(1000)
    await step()
  })
  afterEach(() => fixture.close())

  async function publish(ticks: number): Promise<OracleReport> {
    const observedAt = ++fixture.clock.value as Millis
    const report = { price: priceOf(spec, ticks as Ticks), observedAt, signatures: '0xfeed' } as const
    await publishReports(fixture.db, [{ marketId: 1, feed: 'index', report, readings: READINGS }])
    return report
  }
  const kept = async () => {
    const rows = await fixture.db.selectFrom('used_reports').selectAll().orderBy('observed_at').execute()
    return rows.map(({ feed, observed_at, signatures, readings }) => [
      feed,
      observed_at,
      signatures,
      readings,
    ])
  }
  const cross = async () => {
    await fixture.place({ by: alice, side: 'LONG', steps: 10, limit: 1000 })
    await fixture.place({ by: bob, side: 'SHORT', steps: 10, limit: 1000 })
  }

  it('when reports are published and none is used, none is kept', async () => {
    await publish(1001)
    await step()
    expect(await kept()).to.deep.equal([])
  })

  it('when a batch is matched, its report is kept with its readings, once', async () => {
    const { observedAt } = await publish(1001)
    await cross()
    expect(await step()).to.equal(1)
    await cross()
    expect(await step()).to.equal(2)
    expect(await kept()).to.deep.equal([['index', observedAt, '0xfeed', JSON.stringify(READINGS)]])
  })

  it('when a mark triggers an order, the report behind the mark is kept', async () => {
    await fixture.place({ by: alice, side: 'LONG', steps: 10, type: 'STOP_MARKET', trigger: 1010 })
    const { observedAt } = await publish(1010)
    expect(await step()).to.equal(null)
    expect((await kept()).map(([, at]) => at)).to.deep.equal([observedAt])
  })

  it('when a funding update is queued, its reports of both feeds are kept', async () => {
    const report = await publish(1000)
    const session: SessionReport = {
      endsAt: (fixture.clock.value + 1_000_000) as Millis,
      observedAt: report.observedAt,
      signatures: '0x5e',
    }
    const build = ({ asOf }: { readonly asOf: Millis }): UpdateFunding => ({
      ...{ kind: 'update_funding', asOf, rate: 1n as HourlyFunding, validUntil: asOf, report, session },
    })
    expect((await fixture.enqueue(build)).ok).to.equal(true)
    expect((await kept()).map(([feed, , signatures]) => [feed, signatures])).to.have.deep.members([
      ['index', '0xfeed'],
      ['session', '0x5e'],
    ])
  })

  it('when the feed is halted, no batch is matched and no order triggers, until a report ends the halt', async () => {
    const order = await fixture.place({
      by: alice,
      side: 'LONG',
      steps: 10,
      type: 'STOP_MARKET',
      trigger: 1010,
    })
    await cross()
    await publish(1010)
    await recordAbsences(fixture.db, [
      { marketId: 1, feed: 'index', reason: 'SOURCES_DISAGREE', readings: READINGS },
    ])
    expect(await step()).to.equal(null)
    expect((await fixture.orderOf(order)).status).to.equal('PENDING_TRIGGER')
    expect(await kept()).to.deep.equal([])

    await publish(1010)
    expect(await step()).to.equal(1)
    expect((await fixture.orderOf(order)).status).to.not.equal('PENDING_TRIGGER')
  })
})

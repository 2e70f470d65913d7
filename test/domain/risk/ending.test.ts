import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { MarketMode } from '../../../domain/market/market.ts'
import {
  closesAt,
  type Ending,
  FINAL_REPORT_TIME,
  isClosed,
  isFinalizable,
  isUnreported,
  listedEnding,
  modeAt,
  reportableUntil,
  submitFinalReport,
} from '../../../domain/risk/ending.ts'
import type { Millis, Price } from '../../../domain/units.ts'
import { future, perpetual } from '../../support/markets.ts'

const ms = (at: number): Millis => at as Millis
const T = 1_700_000_000_000
const DAY = 86_400_000
const AHEAD = 2_000

const ending = (change: Partial<Ending> = {}): Ending => ({
  ...{ expiresAt: ms(T), settlingAt: ms(0), disputeWindow: ms(DAY), report: null },
  ...change,
})

describe('closesAt', () => {
  it('when expiry and settling time are set, it is the earlier; when none is, it is null', () => {
    expect(closesAt(ending())).to.equal(T)
    expect(closesAt(ending({ settlingAt: ms(T - 1) }))).to.equal(T - 1)
    expect(closesAt(ending({ settlingAt: ms(T + 1) }))).to.equal(T)
    expect(closesAt(ending({ expiresAt: ms(0), settlingAt: ms(T) }))).to.equal(T)
    expect(closesAt(ending({ expiresAt: ms(0) }))).to.equal(null)
  })

  it('when a market is listed, it closes at its expiry, and a perpetual never', () => {
    expect(closesAt(listedEnding(future))).to.equal(future.expiresAt)
    expect(closesAt(listedEnding(perpetual))).to.equal(null)
  })

  it('when time reaches it, the market is closed; 1 ms before, not', () => {
    expect([isClosed(ending(), ms(T - 1)), isClosed(ending(), ms(T))]).to.deep.equal([false, true])
    expect(isClosed(ending({ expiresAt: ms(0) }), ms(2 ** 47))).to.equal(false)
  })
})

describe('modeAt', () => {
  const modes: readonly MarketMode[] = ['open', 'cancel_only', 'halted', 'settling']

  it('when the market is closed, it is settling unless it is settled; 1 ms before, the stored mode counts', () => {
    for (const mode of modes) {
      expect(modeAt(mode, ending(), ms(T))).to.equal('settling')
      expect(modeAt(mode, ending(), ms(T - 1))).to.equal(mode)
      expect(modeAt(mode, ending({ settlingAt: ms(T - 1) }), ms(T - 1))).to.equal('settling')
    }
    expect(modeAt('settled', ending(), ms(T))).to.equal('settled')
  })

  it('when the market has no close, the stored mode counts', () => {
    const never = ending({ expiresAt: ms(0) })
    for (const mode of modes) expect(modeAt(mode, never, ms(T))).to.equal(mode)
  })
})

describe('submitFinalReport', () => {
  const report = (observedAt: number, price = 7n) => ({ price: price as Price, observedAt: ms(observedAt) })
  const submit = (given: Ending, observedAt: number, at: number, market = future, price = 7n) => {
    const verdict = submitFinalReport(market, given, report(observedAt, price), ms(at))
    return verdict.ok ? verdict.value : verdict.refusal
  }
  const first = (observedAt: number) => ending({ report: { ...report(observedAt), reportedAt: ms(T + 50) } })

  it('when it comes at the close or within a week of it, it is the first report; 1 ms outside, it is rejected', () => {
    expect(submit(ending(), T, T - 1)).to.equal('MARKET_NOT_CLOSED')
    expect(submit(ending({ expiresAt: ms(0) }), T, T)).to.equal('MARKET_NOT_CLOSED')
    for (const at of [T, T + FINAL_REPORT_TIME]) {
      expect(submit(ending(), T, at)).to.deep.equal(ending({ report: { ...report(T), reportedAt: ms(at) } }))
    }
    expect(submit(ending(), T, T + FINAL_REPORT_TIME + 1)).to.equal('LATE')
  })

  it('when it was observed 1 ms before the close or too far ahead, it is rejected', () => {
    expect(submit(ending(), T - 1, T)).to.equal('EARLY')
    expect(submit(ending(), T + AHEAD, T)).to.have.property('report')
    expect(submit(ending(), T + AHEAD + 1, T)).to.equal('AHEAD')
  })

  it('when it is newer than a future’s report or nearer to a perpetual’s close, it replaces that and keeps the window', () => {
    expect(submit(first(T + 10), T + 11, T + 60)).to.deep.include({
      report: { ...report(T + 11), reportedAt: T + 50 },
    })
    expect(submit(first(T + 10), T + 10, T + 60)).to.equal('SUPERSEDED')
    expect(submit(first(T + 10), T + 9, T + 60, perpetual)).to.have.property('report')
    expect(submit(first(T + 10), T + 10, T + 60, perpetual)).to.equal('SUPERSEDED')
  })

  it('when another price of the same moment is proven, it replaces a perpetual’s report, because a round may supersede another within its second', () => {
    const corrected = { ...report(T + 10, 8n), reportedAt: T + 50 }
    expect(submit(first(T + 10), T + 10, T + 60, perpetual, 8n)).to.deep.include({ report: corrected })
    expect(submit(first(T + 10), T + 11, T + 60, perpetual, 8n)).to.equal('SUPERSEDED')
    expect(submit(first(T + 10), T + 10, T + 60, future, 8n)).to.equal('SUPERSEDED')
  })

  it('when the dispute window is over, it is rejected, and the market can be finalized from then on', () => {
    const until = T + 50 + DAY
    expect(reportableUntil(first(T))).to.equal(until)
    expect(submit(first(T), T + 1, until)).to.have.property('report')
    expect(submit(first(T), T + 1, until + 1)).to.equal('LATE')
    expect([isFinalizable(first(T), ms(until)), isFinalizable(first(T), ms(until + 1))]).to.deep.equal([
      ...[false, true],
    ])
  })

  it('when time passes, at most one of reporting, finalizing and freezing is possible, and after the close always one', () => {
    const times = fc.integer({ min: T - 2, max: T + 2 * FINAL_REPORT_TIME })
    const reportedAt = fc.option(fc.integer({ min: T, max: T + FINAL_REPORT_TIME }))
    fc.assert(
      fc.property(times, reportedAt, (now, at) => {
        const given = at === null ? ending() : ending({ report: { ...report(T), reportedAt: ms(at) } })
        const observedAt = at === null ? now : Math.max(T + 1, at)
        const isReportable = submitFinalReport(future, given, report(observedAt), ms(now)).ok
        const ways = [isReportable, isFinalizable(given, ms(now)), isUnreported(given, ms(now))]
        const expected = now >= T && (at === null || now >= at) ? 1 : ways.filter(Boolean).length
        return ways.filter(Boolean).length === expected && expected <= 1
      }),
    )
  })
})

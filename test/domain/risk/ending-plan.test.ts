import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import {
  type Ending,
  isFinalizable,
  reportableUntil,
  submitFinalReport,
} from '../../../domain/risk/ending.ts'
import { planEnding } from '../../../domain/risk/ending-plan.ts'
import type { OracleReport } from '../../../domain/settlement/settlement.ts'
import type { Millis } from '../../../domain/units.ts'
import { price } from '../../support/markets.ts'

const CLOSE = 1_000_000
const WINDOW = 100_000
const WEEK = 604_800_000
const FUTURE = { kind: 'future' } as const
const PERPETUAL = { kind: 'perpetual' } as const

const report = (text: string, observedAt = CLOSE + 1): OracleReport => ({
  ...{ price: price(text), observedAt: observedAt as Millis, signatures: '0x' },
})
const ending = (inForce: Ending['report'] = null): Ending => ({
  ...{
    expiresAt: CLOSE as Millis,
    settlingAt: 0 as Millis,
    disputeWindow: WINDOW as Millis,
    report: inForce,
  },
})
const inForce = (text: string, observedAt = CLOSE + 1) => ({
  ...{ price: price(text), observedAt: observedAt as Millis, reportedAt: (CLOSE + 5_000) as Millis },
})
const plan = (
  at: number,
  {
    kind = FUTURE as Parameters<typeof planEnding>[0],
    last = ending(),
    says = null as OracleReport | null,
  } = {},
) => planEnding(kind, last, says, at as Millis)

describe('domain/risk/ending-plan', () => {
  it('when the market is not closed, nothing is done, whatever the feed says', () => {
    expect(plan(CLOSE - 1, { says: report('5') })).to.deep.equal({ kind: 'none' })
  })

  it('when it is closed without a report, it waits for one, and after a week any account can freeze it', () => {
    expect(plan(CLOSE)).to.deep.equal({ kind: 'await_report' })
    expect(plan(CLOSE + WEEK)).to.deep.equal({ kind: 'await_report' })
    expect(plan(CLOSE + WEEK + 1)).to.deep.equal({ kind: 'unreported' })
    expect(plan(CLOSE + WEEK + 1, { says: report('5') })).to.deep.equal({ kind: 'unreported' })
    expect(plan(CLOSE + 10, { says: report('5', CLOSE - 1) }), 'observed too early').to.deep.equal({
      kind: 'await_report',
    })
  })

  it('when the feed says a price, it is submitted, and another one within the dispute window', () => {
    const first = report('5')
    expect(plan(CLOSE + 10, { says: first })).to.deep.equal({ kind: 'submit_report', report: first })
    const last = ending(inForce('5'))
    const until = CLOSE + 5_000 + WINDOW
    expect(plan(until, { last, says: report('5', CLOSE + 9) })).to.deep.equal({
      kind: 'await_dispute',
      until,
    })
    const other = report('6', CLOSE + 9)
    expect(plan(until, { last, says: other })).to.deep.equal({ kind: 'submit_report', report: other })
    expect(plan(until + 1, { last, says: other })).to.deep.equal({ kind: 'finalize', report: last.report })
  })

  it('when a perpetual has a report, only one nearer to the close replaces it', () => {
    const last = ending(inForce('5', CLOSE + 50))
    const options = { kind: PERPETUAL, last }
    const [nearer, later] = [report('6', CLOSE + 40), report('6', CLOSE + 60)]
    expect(plan(CLOSE + 9_000, { ...options, says: nearer }).kind).to.equal('submit_report')
    expect(plan(CLOSE + 9_000, { ...options, says: later }).kind).to.equal('await_dispute')
  })

  it('when it submits or finalizes, the contract accepts that', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(FUTURE, PERPETUAL),
        fc.option(fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 0, max: 30 })), { nil: null }),
        fc.option(fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: -5, max: 40 })), { nil: null }),
        fc.integer({ min: -5, max: 60 }),
        (kind, known, said, after) => {
          const at = (seconds: number) => (CLOSE + seconds * 5_000) as Millis
          const last = ending(known && inForce(`${known[0]}`, at(known[1])))
          const says = said && report(`${said[0]}`, at(said[1]))
          const step = planEnding(kind, last, says, at(after))
          if (step.kind === 'submit_report')
            expect(submitFinalReport(kind, last, step.report, at(after)).ok).to.equal(true)
          if (step.kind === 'finalize') {
            expect(isFinalizable(last, at(after))).to.equal(true)
            expect(at(after)).to.be.greaterThan(reportableUntil(last) as number)
          }
          if (after >= 0) expect(step.kind).to.not.equal('none')
        },
      ),
      { seed: 15, numRuns: 2_000 },
    )
  })
})

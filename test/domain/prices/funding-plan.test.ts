import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { SessionReport } from '../../../domain/actions/action.ts'
import {
  type FundingRate,
  fractionOf,
  fundingBounds,
  fundingCapAt,
  HOUR,
  NO_RATE,
  setFunding,
} from '../../../domain/prices/funding.ts'
import {
  type FundingPlanInput,
  nextUpdateAt,
  planFundingUpdate,
  proposedRate,
  RETRY_PAUSE,
  UPDATE_INTERVAL,
} from '../../../domain/prices/funding-plan.ts'
import { NO_PREMIUM } from '../../../domain/prices/premium.ts'
import type { HourlyFunding, Millis, Price, Rate } from '../../../domain/units.ts'
import { binary, future, index, perpetual, price, rate } from '../../support/markets.ts'

const millis = (value: number): Millis => value as Millis
const NOW = millis(1_800_000_000_000)
const ORACLE = price('50000')
const RULES = {
  ...{ kind: perpetual.kind, tick: perpetual.tick, maxAge: millis(10_000) },
  ...{ moveBase: 1_000_000n, moveSlope: 0n, moveWindow: millis(1) },
}
const running = (change: Partial<FundingRate> = {}): FundingRate => ({
  ...{ rate: 0n as HourlyFunding, validFrom: millis(NOW - 1000), validUntil: millis(NOW - 1000 + HOUR) },
  ...change,
})

describe('the proposed rate', () => {
  const propose = (premium: Rate, from: FundingRate, asOf = NOW) =>
    proposedRate(perpetual, from, premium, ORACLE, asOf)
  const settled = running({ validFrom: millis(NOW - HOUR) })

  it('when it is within the bounds, it is an eighth of the premium per hour at the oracle price', () => {
    // 0.8 % of a step of 50 USDM, over 8 hours.
    expect(propose(rate('0.008'), settled)).to.equal(rate('0.05'))
    expect(propose(rate('-0.008') as Rate, settled)).to.equal(-rate('0.05'))
    expect(fractionOf(perpetual, rate('0.05') as unknown as HourlyFunding, ORACLE)).to.equal(rate('0.001'))
  })

  it('when it exceeds the cap or the slope, it is the bound of the contract', () => {
    const cap = fundingCapAt(perpetual, ORACLE)
    expect(
      propose(rate('0.09'), running({ validFrom: millis(NOW - HOUR), validUntil: millis(NOW + 1) })),
    ).to.equal(cap)
    expect(propose(rate('0.09'), NO_RATE)).to.equal(cap / 3n)
    const quarter = running({ validFrom: millis(NOW - 675_000) })
    expect(propose(rate('0.09'), quarter)).to.equal(cap / 2n)
    expect(propose(rate('-0.09') as Rate, quarter)).to.equal(-cap / 2n)
  })

  it('when any rate runs and any premium is measured, the contract accepts it', () => {
    const anyWei = fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n })
    fc.assert(
      fc.property(
        fc.record({
          premium: fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n }),
          oracle: fc.bigInt({ min: 1n, max: 10n ** 24n }),
          cap: fc.integer({ min: 1, max: 40_000 }),
          last: anyWei,
          validity: fc.integer({ min: 1, max: HOUR }),
          elapsed: fc.integer({ min: 0, max: 2 * HOUR }),
        }),
        ({ premium, oracle, cap, last, validity, elapsed }) => {
          const spec = { ...perpetual, fundingCap: (BigInt(cap) * 10n ** 12n) as Rate }
          const from = {
            ...{ rate: last as HourlyFunding, validFrom: NOW },
            validUntil: millis(NOW + validity),
          }
          const asOf = millis(NOW + elapsed)
          const proposed = proposedRate(spec, from, premium as Rate, oracle as Price, asOf)
          const verdict = setFunding(
            spec,
            { asOf, rate: proposed, validUntil: millis(asOf + HOUR) },
            { running: from, index: index(0n), oracle: oracle as Price, sessionEnd: null },
          )
          expect(verdict.ok).to.equal(true)
          const { lowest, highest } = fundingBounds(spec, from, oracle as Price, asOf)
          const wanted = (premium * oracle * spec.step) / (8n * 10n ** 36n)
          if (wanted >= lowest && wanted <= highest) expect(proposed).to.equal(wanted)
        },
      ),
    )
  })
})

describe('the plan of a funding update', () => {
  const report = { price: ORACLE, observedAt: millis(NOW - 500), signatures: '0x01' as const }
  const session = (endsAt: number, observedAt = NOW - 500): SessionReport => ({
    ...{ endsAt: millis(endsAt), observedAt: millis(observedAt), signatures: '0x02' },
  })
  const input = (change: Partial<FundingPlanInput> = {}): FundingPlanInput => ({
    ...{ spec: perpetual, rules: RULES, mode: 'open', asOf: NOW, report, session: null, last: null },
    ...{ usedReport: null, premium: NO_PREMIUM, interval: UPDATE_INTERVAL },
    funding: { index: index(0n), asOf: millis(NOW - 1000), running: NO_RATE },
    ...change,
  })
  const plan = (change: Partial<FundingPlanInput> = {}) => planFundingUpdate(input(change))
  const isPlanned = (change: Partial<FundingPlanInput> = {}): boolean => plan(change) !== null
  const runs = (rate: Partial<FundingRate>) => ({ ...input().funding, running: running(rate) })

  it('when no rate is valid, an update with the longest validity is due at once', () => {
    expect(plan()).to.deep.equal({
      ...{ kind: 'update_funding', asOf: NOW, rate: 0n, validUntil: NOW + HOUR, report, session: null },
    })
    expect(isPlanned({ funding: runs({ validUntil: NOW }) })).to.equal(true)
  })

  it('when a rate runs, the next one is due at the interval, well before its end', () => {
    const at = (elapsed: number) => isPlanned({ funding: runs({ validFrom: millis(NOW - elapsed) }) })
    expect([at(UPDATE_INTERVAL - 1), at(UPDATE_INTERVAL)]).to.deep.equal([false, true])
    expect(nextUpdateAt(running({ validFrom: NOW }))).to.equal(NOW + UPDATE_INTERVAL)
    expect(nextUpdateAt(running({ validFrom: NOW, validUntil: millis(NOW + 7) }))).to.equal(NOW + 7)
  })

  it('when an update is in flight, no other is due; after a dropped one there is a pause', () => {
    expect(isPlanned({ last: { asOf: NOW, outcome: 'pending' } })).to.equal(false)
    expect(isPlanned({ last: { asOf: NOW, outcome: 'mined' } })).to.equal(true)
    const dropped = (ago: number) => isPlanned({ last: { asOf: millis(NOW - ago), outcome: 'dropped' } })
    expect([dropped(RETRY_PAUSE - 1), dropped(RETRY_PAUSE)]).to.deep.equal([false, true])
  })

  it('when the market has no funding or another mode, none is due', () => {
    for (const spec of [future, binary, { ...perpetual, fundingCap: rate('0') }]) {
      expect(isPlanned({ spec }), spec.kind).to.equal(false)
    }
    const modes = ['open', 'cancel_only', 'halted', 'settling', 'settled'] as const
    expect(modes.map((mode) => isPlanned({ mode }))).to.deep.equal([true, true, false, false, false])
  })

  it('when there is no usable report, none is due', () => {
    const observed = (observedAt: number) => ({ ...report, observedAt: millis(observedAt) })
    expect(isPlanned({ report: null })).to.equal(false)
    expect(isPlanned({ report: observed(NOW - 10_001) })).to.equal(false)
    expect(isPlanned({ usedReport: { price: ORACLE, observedAt: millis(NOW - 400) } })).to.equal(false)
    expect(isPlanned({ usedReport: { price: price('1'), observedAt: report.observedAt } })).to.equal(false)
  })

  describe('of a market with sessions', () => {
    const stock = { ...perpetual, fundingSession: true }
    const END = NOW + 1_200_000

    it('when the session runs, the rate ends at the latest with it', () => {
      const update = plan({ spec: stock, session: session(END) })
      expect(update)
        .to.include({ validUntil: END })
        .and.have.property('session')
        .that.includes({ endsAt: END })
      expect(plan({ spec: stock, session: session(NOW + 2 * HOUR) })).to.include({ validUntil: NOW + HOUR })
    })

    it('when there is no session, or its report is missing or stale, none is due', () => {
      for (const closed of [
        null,
        session(0),
        session(NOW),
        session(END, NOW - 10_001),
        session(END, NOW + 2_001),
      ]) {
        expect(isPlanned({ spec: stock, session: closed })).to.equal(false)
      }
    })

    it('when the session ends earlier than the running rate, an update that ends it is due at once', () => {
      const funding = runs({ validUntil: millis(END + 1) })
      expect(plan({ spec: stock, session: session(END), funding })).to.include({ validUntil: END })
      expect(
        isPlanned({ spec: stock, session: session(END), funding: runs({ validUntil: millis(END) }) }),
      ).to.equal(false)
    })
  })
})

import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { marginOf, type Position } from '../../../domain/positions/position.ts'
import {
  accrue,
  FULL_SWING,
  type FundingContext,
  type FundingRate,
  type FundingUpdate,
  fundingBounds,
  fundingCapAt,
  HOUR,
  MAX_VALIDITY,
  NO_RATE,
  setFunding,
} from '../../../domain/prices/funding.ts'
import { abs, type FundingIndex, type HourlyFunding, type Millis, ONE } from '../../../domain/units.ts'
import { binary, future, index, perpetual, price, quote, rate, steps } from '../../support/markets.ts'

const spec = { ...perpetual, fundingCap: rate('0.01') }
const millis = (value: number): Millis => value as Millis
const hourly = (value: bigint): HourlyFunding => value as HourlyFunding

const ORACLE = price('50000')
/** 1 % of 50 USDM, the price of a step. */
const CAP = 5n * 10n ** 17n

const anyRate = fc.bigInt({ min: -(10n ** 19n), max: 10n ** 19n }).map(hourly)
const anyTime = fc.integer({ min: 0, max: 3 * HOUR }).map(millis)
const anyRunning = fc.record({ rate: anyRate, validFrom: anyTime, validUntil: anyTime })
const anyIndex = fc.bigInt({ min: -(10n ** 24n), max: 10n ** 24n }).map(index)

const inOrder = (...times: number[]): number[] => times.sort((a, b) => a - b)

describe('accrue', () => {
  const running: FundingRate = { rate: hourly(3_600_000n), validFrom: millis(1000), validUntil: millis(5000) }

  it('when a rate is valid, it adds the rate for that time', () => {
    expect(accrue(index(7n), running, millis(2000), millis(3000))).to.equal(1007n)
    expect(accrue(index(7n), running, millis(0), millis(9000))).to.equal(4007n)
  })

  it('when the interval lies outside the validity, it adds nothing, at either end', () => {
    expect(accrue(index(7n), running, millis(0), millis(1000))).to.equal(7n)
    expect(accrue(index(7n), running, millis(5000), millis(9000))).to.equal(7n)
    expect(accrue(index(7n), running, millis(4999), millis(5000))).to.equal(8n)
    expect(accrue(index(7n), running, millis(3000), millis(3000))).to.equal(7n)
    expect(accrue(index(7n), NO_RATE, millis(0), millis(9000))).to.equal(7n)
  })

  it('when the result is fractional, it rounds towards zero for either sign', () => {
    const small = { ...running, rate: hourly(3_599n) }
    expect(accrue(index(0n), small, millis(1000), millis(2000))).to.equal(0n)
    expect(accrue(index(0n), { ...small, rate: hourly(-3_599n) }, millis(1000), millis(2000))).to.equal(0n)
    expect(accrue(index(0n), { ...small, rate: hourly(-3_600n) }, millis(1000), millis(2000))).to.equal(-1n)
  })

  it('when any interval is accrued, it accrues only within validity, with the sign of the rate and at most the rate', () => {
    fc.assert(
      fc.property(anyIndex, anyRunning, anyTime, anyTime, (before, running, a, b) => {
        const [from = 0, to = 0] = inOrder(a, b)
        const grown = accrue(before, running, millis(from), millis(to)) - before
        const overlap = Math.min(to, running.validUntil) - Math.max(from, running.validFrom)
        if (overlap <= 0) expect(grown).to.equal(0n)
        expect(grown * running.rate >= 0n).to.equal(true)
        expect(abs(grown) * BigInt(HOUR) <= abs(running.rate) * BigInt(Math.max(0, overlap))).to.equal(true)
      }),
    )
  })

  it('when time is split into n intervals, it grows by at most n - 1 wei less than in one, and never by more', () => {
    fc.assert(
      fc.property(anyRunning, fc.array(anyTime, { minLength: 2, maxLength: 30 }), (running, times) => {
        const cuts = inOrder(...times)
        const whole = accrue(index(0n), running, millis(cuts[0]!), millis(cuts.at(-1)!))
        let split: FundingIndex = index(0n)
        for (let at = 1; at < cuts.length; at++) {
          split = accrue(split, running, millis(cuts[at - 1]!), millis(cuts[at]!))
        }
        const lost = abs(whole) - abs(split)
        expect(lost >= 0n && lost <= BigInt(cuts.length - 2)).to.equal(true)
      }),
    )
  })

  it('when any positions are open, longs pay exactly the amount that shorts receive, to the wei', () => {
    const anySizes = fc.array(fc.integer({ min: -(2 ** 40), max: 2 ** 40 }), { minLength: 1, maxLength: 20 })
    fc.assert(
      fc.property(anySizes, anyIndex, anyRunning, (sizes, before, running) => {
        const balanced = [...sizes, -sizes.reduce((sum, size) => sum + size, 0)]
        const after = accrue(before, running, millis(0), millis(3 * HOUR))
        const paid = balanced.map((size) => {
          const held: Position = {
            size: steps(size),
            entryNotional: quote('1'),
            foldedMargin: quote('5'),
            leverage: 1,
          }
          return marginOf(held, before) - marginOf(held, after)
        })
        expect(paid.reduce((sum, amount) => sum + amount, 0n)).to.equal(0n)
      }),
    )
  })
})

describe('fundingBounds', () => {
  const half = FULL_SWING / 2
  const running = (value: bigint, from: number, until = from + HOUR): FundingRate => ({
    rate: hourly(value),
    validFrom: millis(from),
    validUntil: millis(until),
  })

  it('when the cap is converted, it is in wei per step and hour', () => {
    expect(fundingCapAt(spec, ORACLE)).to.equal(CAP)
    expect(fundingCapAt({ ...spec, step: 1n as typeof spec.step }, price('1'))).to.equal(0n)
  })

  it('when no rate has been set, it starts within a third of the cap', () => {
    const bounds = fundingBounds(spec, NO_RATE, ORACLE, millis(10 ** 12))
    expect(bounds).to.deep.equal({ lowest: -CAP / 3n, highest: CAP / 3n })
  })

  it('when a rate is running, it may move from one end to the other in 45 minutes', () => {
    const at = 10 ** 12
    const top = running(CAP, at)
    expect(fundingBounds(spec, top, ORACLE, millis(at))).to.deep.equal({ lowest: CAP, highest: CAP })
    expect(fundingBounds(spec, top, ORACLE, millis(at + half))).to.deep.equal({ lowest: 0n, highest: CAP })
    expect(fundingBounds(spec, top, ORACLE, millis(at + FULL_SWING - 1)).lowest > -CAP).to.equal(true)
    expect(fundingBounds(spec, top, ORACLE, millis(at + FULL_SWING)).lowest).to.equal(-CAP)
  })

  it('when the rate has lapsed, it moves no faster, and towards zero', () => {
    const at = 10 ** 12
    const lapsed = running(CAP, at, at + 1)
    expect(fundingBounds(spec, lapsed, ORACLE, millis(at + half))).to.deep.equal({
      lowest: 0n,
      highest: CAP / 3n,
    })
    const soon = fundingBounds(spec, lapsed, ORACLE, millis(at + 1))
    expect(soon.lowest).to.equal(soon.highest)
    expect(soon.highest < CAP).to.equal(true)
  })

  it("when the oracle price has fallen below the last rate's cap, it counts from the new cap", () => {
    const at = 10 ** 12
    const bounds = fundingBounds(spec, running(2n * CAP, at), ORACLE, millis(at))
    expect(bounds).to.deep.equal({ lowest: CAP, highest: CAP })
  })

  it('when any rate follows, the bounds are not empty, within the cap, and take at least 45 minutes from end to end', () => {
    const anyWait = fc.integer({ min: 0, max: HOUR })
    const anyMove = fc.record({
      wait: anyWait,
      validity: fc.integer({ min: 1, max: HOUR }),
      up: fc.boolean(),
    })
    fc.assert(
      fc.property(anyRate, fc.array(anyMove, { minLength: 1, maxLength: 20 }), (first, moves) => {
        let last = running(first > CAP ? CAP : first < -CAP ? -CAP : first, 10 ** 12)
        const start = last
        for (const { wait, validity, up } of moves) {
          const asOf = last.validFrom + wait
          const { lowest, highest } = fundingBounds(spec, last, ORACLE, millis(asOf))
          expect(-CAP <= lowest && lowest <= highest && highest <= CAP).to.equal(true)
          last = running(up ? highest : lowest, asOf, asOf + validity)
          const elapsed = BigInt(Math.min(asOf - start.validFrom, FULL_SWING))
          const moved = abs(last.rate - start.rate)
          expect(moved * BigInt(FULL_SWING) <= 2n * CAP * elapsed).to.equal(true)
        }
      }),
    )
  })
})

describe('setFunding', () => {
  const at = millis(10 ** 12)
  const update = (change: Partial<FundingUpdate> = {}): FundingUpdate => ({
    asOf: at,
    rate: hourly(CAP / 4n),
    validUntil: millis(at + MAX_VALIDITY),
    ...change,
  })
  const context = (change: Partial<FundingContext> = {}): FundingContext => ({
    running: NO_RATE,
    index: index(0n),
    oracle: ORACLE,
    sessionEnd: null,
    ...change,
  })
  const refusal = (change: Partial<FundingUpdate>, within: Partial<FundingContext> = {}) => {
    const verdict = setFunding(spec, update(change), context(within))
    return verdict.ok ? null : verdict.refusal
  }

  it('when a rate is within its bounds, it applies from its asOf', () => {
    const verdict = setFunding(spec, update(), context())
    expect(verdict.ok && verdict.value).to.deep.equal({
      rate: CAP / 4n,
      validFrom: at,
      validUntil: at + MAX_VALIDITY,
    })
  })

  it('when the market is not a perpetual, it refuses', () => {
    for (const kind of [future.kind, binary.kind]) {
      const verdict = setFunding({ ...spec, kind }, update(), context())
      expect(verdict.ok ? null : verdict.refusal).to.deep.equal({ code: 'NOT_PERPETUAL' })
    }
  })

  it('when the market has no funding, it accepts only 0', () => {
    const off = { ...spec, fundingCap: rate('0') }
    expect(setFunding(off, update({ rate: hourly(0n) }), context()).ok).to.equal(true)
    expect(setFunding(off, update({ rate: hourly(1n) }), context()).ok).to.equal(false)
  })

  it('when a rate is one wei beyond its bounds, it refuses and returns the bounds', () => {
    const { lowest, highest } = fundingBounds(spec, NO_RATE, ORACLE, at)
    expect(refusal({ rate: highest })).to.equal(null)
    expect(refusal({ rate: lowest })).to.equal(null)
    for (const rate of [hourly(highest + 1n), hourly(lowest - 1n)]) {
      expect(refusal({ rate })).to.deep.equal({ code: 'RATE_OUT_OF_RANGE', received: rate, lowest, highest })
    }
  })

  it('when the validity is zero or above an hour, it refuses', () => {
    const latest = at + MAX_VALIDITY
    expect(refusal({ validUntil: millis(at + 1) })).to.equal(null)
    for (const validUntil of [at, millis(latest + 1)]) {
      const expected = { code: 'VALIDITY', after: at, latest, received: validUntil }
      expect(refusal({ validUntil })).to.deep.equal(expected)
    }
  })

  it('when the validity exceeds the session, it refuses', () => {
    const sessionEnd = millis(at + 1000)
    expect(refusal({ validUntil: sessionEnd }, { sessionEnd })).to.equal(null)
    const received = millis(sessionEnd + 1)
    const past = { code: 'PAST_SESSION_END', sessionEnd, received }
    expect(refusal({ validUntil: received }, { sessionEnd })).to.deep.equal(past)
    for (const closed of [millis(0), at]) {
      expect(refusal({}, { sessionEnd: closed })).to.deep.equal({ code: 'SESSION_CLOSED' })
    }
  })

  it('when a rate could exceed the bits of the index, it refuses, and no accepted rate ever does', () => {
    const end = 1n << 95n
    const full = { ...spec, fundingCap: rate('0.04') }
    const huge = (10n ** 12n * ONE) as typeof ORACLE
    const { highest } = fundingBounds(full, NO_RATE, huge, at)
    const room = index(end - 1n - highest)
    const within = (index: FundingIndex) => context({ index, oracle: huge })
    expect(setFunding(full, update({ rate: highest }), within(room)).ok).to.equal(true)
    const verdict = setFunding(full, update({ rate: highest }), within(index(room + 1n)))
    expect(verdict.ok ? null : verdict.refusal).to.deep.equal({
      code: 'INDEX_OUT_OF_RANGE',
      index: room + 1n,
    })
  })
})

import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { Position } from '../../../domain/positions/position.ts'
import {
  claimDue,
  deficitAt,
  haircutOf,
  INSOLVENCY_WINDOW,
  valueAt,
  windowEndOf,
} from '../../../domain/risk/wind-down.ts'
import { type Millis, ONE, type Price, type Quote, type Seconds } from '../../../domain/units.ts'
import { anyMarketCase, worthOf } from '../../support/any-positions.ts'
import { quote } from '../../support/markets.ts'

const sum = (amounts: readonly bigint[]): bigint => amounts.reduce((total, each) => total + each, 0n)

describe('windowEndOf', () => {
  const endedAt = (1_700_000_000 * 1000) as Millis
  const planned = (endedAt + INSOLVENCY_WINDOW) as Millis
  const DAY = 86_400
  const pausedUntil = (days: number) => (endedAt / 1000 + days * DAY) as Seconds

  it('when there was no pause, or one that ended a day before the planned end, claims open as planned', () => {
    for (const pause of [0 as Seconds, pausedUntil(-1), pausedUntil(2)])
      expect(windowEndOf(endedAt, false, pause)).to.equal(planned)
  })

  it('when a pause ends later, claims open a day after it', () => {
    expect(windowEndOf(endedAt, false, (pausedUntil(2) + 1) as Seconds)).to.equal(planned + 1000)
    expect(windowEndOf(endedAt, false, pausedUntil(6))).to.equal(endedAt + 7 * DAY * 1000)
  })

  it('when the haircut is fixed, no pause changes the end of the window', () => {
    expect(windowEndOf(endedAt, true, pausedUntil(30))).to.equal(planned)
  })
})

describe('haircutOf', () => {
  it('when no account has a deficit, it pays in full', () => {
    const haircut = haircutOf(quote('100'), quote('100'), quote('0'))
    expect(claimDue(quote('70'), haircut)).to.equal(quote('70'))
  })

  it('when there is a deficit, it is shared by value', () => {
    const haircut = haircutOf(quote('75'), quote('75'), quote('25'))
    expect(claimDue(quote('60'), haircut)).to.equal(quote('45'))
    expect(claimDue(quote('40'), haircut)).to.equal(quote('30'))
  })

  it('when a deficit was covered, it pays in full and never more', () => {
    expect(claimDue(quote('60'), haircutOf(quote('75'), quote('100'), quote('25')))).to.equal(quote('60'))
    expect(claimDue(quote('60'), haircutOf(quote('75'), quote('200'), quote('25')))).to.equal(quote('60'))
  })

  it('when the value of a claim is zero or negative, it pays nothing', () => {
    expect(claimDue(quote('-1'), haircutOf(quote('75'), quote('75'), quote('25')))).to.equal(0n)
    expect(claimDue(quote('0'), haircutOf(quote('0'), quote('0'), quote('0')))).to.equal(0n)
  })

  it('when the pool was empty and no deficit was reported, it owes the full value', () => {
    expect(claimDue(quote('5'), haircutOf(quote('0'), quote('0'), quote('0')))).to.equal(quote('5'))
    expect(claimDue(quote('5'), haircutOf(quote('0'), quote('9'), quote('0')))).to.equal(quote('5'))
  })
})

/** Positions whose sizes cancel out: the last one takes the opposite of the sum. */
const balanced = (positions: readonly Position[]): Position[] => {
  const size = -positions.reduce((total, each) => total + each.size, 0)
  const last = { size, entryNotional: 10n ** 6n * BigInt(Math.abs(size)), foldedMargin: 0n, leverage: 1 }
  return size === 0 ? [...positions] : [...positions, last as Position]
}

describe('claims at a haircut', () => {
  it('when accounts claim in any sequence, they never exceed the pool and leave only dust', () => {
    fc.assert(
      fc.property(anyMarketCase(6), fc.bigInt({ min: 0n, max: ONE }), ({ spec, positions, index }, at) => {
        const all = balanced(positions)
        const price = at as Price
        // The pool is the value of all positions together. Their sizes cancel out, so it does not depend on
        // the price.
        const pool = worthOf(spec, all, index, at) / ONE
        fc.pre(pool >= 0n)
        const deficit = sum(all.map((each) => deficitAt(spec, each, index, price))) as Quote
        const haircut = haircutOf(pool as Quote, pool as Quote, deficit)
        const due = all.map((each) => claimDue(valueAt(spec, each, index, price), haircut))
        expect(sum(due) <= pool).to.equal(true)
        // One wei per account for rounding its value, one for the haircut, and one for each deficit.
        if (due.some((each) => each > 0n)) expect(pool - sum(due) <= BigInt(3 * all.length)).to.equal(true)
      }),
    )
  })

  it('when values are rounded, a deficit rounds up and a value rounds down', () => {
    fc.assert(
      fc.property(anyMarketCase(1), ({ spec, positions, index, oracle }) => {
        const [position] = positions as [Position]
        const worth = worthOf(spec, [position], index, oracle)
        const value = valueAt(spec, position, index, oracle)
        const deficit = deficitAt(spec, position, index, oracle)
        expect(value * ONE <= worth && (value + 1n) * ONE > worth).to.equal(true)
        expect(deficit).to.equal(value < 0n ? -value : 0n)
      }),
    )
  })
})

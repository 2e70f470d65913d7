import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { Reading } from '../../../domain/prices/aggregate.ts'
import { rangeOf } from '../../../domain/prices/feed.ts'
import { isReportDue, nextObservedAt, phaseOf } from '../../../domain/prices/publication.ts'
import { type LastSigned, type SigningRules, signingRefusal } from '../../../domain/prices/signing.ts'
import type { Millis } from '../../../domain/units.ts'
import { binary, e18, perpetual } from '../../support/markets.ts'

const NOW = 1_800_000_000_000 as Millis
const rules: SigningRules = {
  range: rangeOf(perpetual, 'index'),
  maxAge: 5_000 as Millis,
  maxAhead: 2_000 as Millis,
  move: { kind: 'perpetual', moveBase: 100_000n, moveSlope: 20_000n, moveWindow: 1_000 as Millis },
}
const reading = (price: string, offset = 0): Reading => ({
  price: e18(price),
  observedAt: (NOW + offset) as Millis,
})
const last: LastSigned = reading('100', -1_000)

describe('signingRefusal', () => {
  for (const [what, asked, refusal] of [
    ['is fresh and moves little', reading('101'), null],
    ['is zero', reading('0'), 'OUT_OF_RANGE'],
    ['is negative', reading('-1'), 'OUT_OF_RANGE'],
    ['is as old as allowed', { ...reading('100'), observedAt: (NOW - 5_000) as Millis }, 'OLDER'],
    ['is too old', reading('100', -5_001), 'STALE'],
    ['is as early as allowed', reading('100', 2_000), null],
    ['is from the future', reading('100', 2_001), 'FUTURE'],
    ['goes back in time', reading('100', -1_001), 'OLDER'],
    ['repeats the last one', reading('100', -1_000), null],
    ['contradicts the last one', reading('100.1', -1_000), 'CONFLICT'],
    ['moves by base and slope', reading('112'), null],
    ['moves farther', reading('112.000000000000000001'), 'MOVE_TOO_LARGE'],
    ['falls farther', reading('87.999999999999999999'), 'MOVE_TOO_LARGE'],
  ] as const) {
    it(`when a report ${what}, the signer answers ${refusal ?? 'with a signature'}`, () => {
      expect(signingRefusal(asked, last, rules, NOW)).to.equal(refusal)
    })
  }

  it('when a probability leaves 0, the signer allows the move of its complement', () => {
    const [low, later] = [reading('0.001', -20_000), reading('0.5')]
    const probability = { ...rules, range: rangeOf(binary, 'index') }
    expect(signingRefusal(later, low, probability, NOW)).to.equal('MOVE_TOO_LARGE')
    const move = { ...(rules.move as NonNullable<typeof rules.move>), kind: 'binary_future' as const }
    expect(signingRefusal(later, low, { ...probability, move }, NOW)).to.equal(null)
  })

  it('when a signer has just started, it signs only times at which it cannot have signed another price', () => {
    const started: LastSigned = { price: null, observedAt: (NOW + 2_000) as Millis }
    expect(signingRefusal(reading('100', 2_000), started, rules, NOW)).to.equal('CONFLICT')
    const later = (NOW + 1) as Millis
    expect(signingRefusal(reading('500', 2_001), started, rules, later)).to.equal(null)
  })

  it('when a value may jump, its move is not bounded', () => {
    const session = { ...rules, range: rangeOf(perpetual, 'session'), move: null }
    expect(signingRefusal(reading('0'), { price: BigInt(NOW), observedAt: NOW }, session, NOW)).to.equal(
      'CONFLICT',
    )
    const [before, after] = [{ price: BigInt(NOW), observedAt: last.observedAt }, reading('0')]
    expect(signingRefusal(after, before, session, NOW)).to.equal(null)
  })
})

describe('isReportDue', () => {
  const every = { interval: 500 as Millis, phase: 0 as Millis, deviation: 1_000n }
  for (const [what, before, value, due] of [
    ['no report exists', null, '100', true],
    ['its period has just begun', reading('100', -1), '100', true],
    ['little has changed in its period', reading('100', 0), '100.0999', false],
    ['the value has moved by the deviation', reading('100', 0), '99.9', true],
  ] as const) {
    it(`when ${what}, the result is ${due}`, () => {
      expect(isReportDue(before, e18(value), NOW, every)).to.equal(due)
    })
  }

  it('when 300 feeds are watched for a period, each is due once, and no tick has more than 80 of them', () => {
    const feeds = Array.from({ length: 300 }, (_, index) => ({
      ...every,
      phase: phaseOf(index, every.interval),
    }))
    const last = feeds.map(() => reading('100', -1))
    const counts = Array.from({ length: 5 }, (_, tick) => {
      const now = (NOW + 100 * tick + 99) as Millis
      const due = feeds.filter((rules, at) => isReportDue(last[at] ?? null, e18('100'), now, rules))
      for (const [at, rules] of feeds.entries())
        if (due.includes(rules)) last[at] = { price: e18('100'), observedAt: now }
      return due.length
    })
    expect(counts.reduce((sum, count) => sum + count)).to.equal(300)
    expect(Math.max(...counts)).to.be.at.most(80)
  })

  it('when an exchange has few feeds, they are due in the same tick', () => {
    const phases = Array.from({ length: 8 }, (_, index) => phaseOf(index, every.interval))
    expect(new Set(phases)).to.deep.equal(new Set([0]))
  })

  it('when a value of 0 stays 0, no report is due before the interval has passed', () => {
    const zero: Reading = { price: 0n, observedAt: NOW }
    expect(isReportDue(zero, 0n, NOW, every)).to.equal(false)
    expect(isReportDue(zero, 1n, NOW, every)).to.equal(true)
  })

  it('when the clock goes in any way, the times of reports strictly increase', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -5_000, max: 5_000 }), { minLength: 2 }), (steps) => {
        let before: Reading | null = null
        for (const step of steps) {
          const observedAt: Millis = nextObservedAt((NOW + step) as Millis, before)
          if (before !== null) expect(observedAt).to.be.greaterThan((before as Reading).observedAt)
          before = { price: 1n, observedAt }
        }
      }),
    )
  })
})

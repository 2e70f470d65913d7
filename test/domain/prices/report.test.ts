import { expect } from 'chai'
import { describe, it } from 'mocha'
import { allowedMove, isReportUsable, type ReportRules } from '../../../domain/prices/report.ts'
import type { Millis, Price } from '../../../domain/units.ts'
import { e18 } from '../../support/markets.ts'
import { randomOf } from '../../support/random.ts'

const rules: ReportRules = {
  kind: 'perpetual',
  maxAge: 1000 as Millis,
  moveBase: 10_000n,
  moveSlope: 20_000n,
  moveWindow: 400 as Millis,
}
const report = (price: string, observedAt: number) => ({
  price: e18(price) as Price,
  observedAt: observedAt as Millis,
  signatures: '0x' as const,
})
const AS_OF = 100_000 as Millis
const last = { price: e18('100') as Price, observedAt: 99_500 as Millis }

describe('isReportUsable', () => {
  for (const [name, price, observedAt, used, expected] of [
    ['as old as allowed', '100', 99_000, null, true],
    ['older than allowed', '100', 98_999, null, false],
    ['as far ahead as allowed', '100', 102_000, null, true],
    ['further ahead', '100', 102_001, null, false],
    ['of price 0', '0', 100_000, null, false],
    ['older than the one used', '100', 99_499, last, false],
    ['of the same moment with the same price', '100', 99_500, last, true],
    ['of the same moment with another price', '100.1', 99_500, last, false],
    ['a move of base and slope from the last', '102', 100_000, last, true],
    ['a larger move from the last', '102.000000000000000001', 100_000, last, false],
    ['a move of half the base after half the window', '100.9', 99_700, last, true],
    ['a larger move after half the window', '100.900000000000000001', 99_700, last, false],
    ['the same move down from the last', '98', 100_000, last, true],
    ['a larger move down from the last', '97.999999999999999999', 100_000, last, false],
  ] as const) {
    it(`when a report is ${name}, the result is ${expected}`, () => {
      expect(isReportUsable(report(price, observedAt), used, rules, AS_OF)).to.equal(expected)
    })
  }

  it('when a probability is above 1, it returns false', () => {
    const binary = { ...rules, kind: 'binary_future' as const }
    expect(isReportUsable(report('1', 100_000), null, binary, AS_OF)).to.equal(true)
    expect(isReportUsable(report('1.000000000000000001', 100_000), null, binary, AS_OF)).to.equal(false)
  })
})

describe('allowedMove', () => {
  it('when any series of reports moves as far as allowed, the price stays between 1 - S and e^S of the first', () => {
    const random = randomOf(7)
    const first = e18('100') as Price
    for (let run = 0; run < 500; run++) {
      const given = {
        moveBase: BigInt(random(1_000_001)),
        moveSlope: BigInt(1 + random(1_000_000)),
        moveWindow: (1_000 + random(59_001)) as Millis,
      }
      const perMs = Number(given.moveBase) / 1e6 / given.moveWindow + Number(given.moveSlope) / 1e9
      let [high, low, elapsed] = [first, first, 0]
      for (let report = 1 + random(30); report > 0; report--) {
        const gap = random(Math.ceil(2 / perMs / 30))
        elapsed += gap
        high = (high + allowedMove(high, gap, given)) as Price
        low = (low - allowedMove(low, gap, given)) as Price
      }
      const sum = perMs * elapsed
      expect(Number(high) / Number(first)).to.be.at.most(Math.exp(sum) * (1 + 1e-12))
      expect(Number(low) / Number(first)).to.be.at.least(1 - sum - 1e-12)
    }
  })

  it('when a window is split into any number of reports, their shares add up to at most that of one report', () => {
    for (const count of [1, 2, 3, 7, 400]) {
      const gap = Math.floor(rules.moveWindow / count)
      const one = allowedMove(last.price, gap * count, rules)
      expect(allowedMove(last.price, gap, rules) * BigInt(count) <= one).to.equal(true)
    }
  })
})

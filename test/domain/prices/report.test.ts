import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { allowedMove, isReportUsable, type ReportRules } from '../../../domain/prices/report.ts'
import { type Millis, maxOf, minOf, ONE, type Price } from '../../../domain/units.ts'
import { e18 } from '../../support/markets.ts'
import { randomOf } from '../../support/random.ts'

const rules: ReportRules = {
  kind: 'perpetual',
  tick: e18('0.1') as Price,
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
    const binary = { ...rules, kind: 'binary_future' as const, tick: e18('0.001') as Price }
    expect(isReportUsable(report('1', 100_000), null, binary, AS_OF)).to.equal(true)
    expect(isReportUsable(report('1.000000000000000001', 100_000), null, binary, AS_OF)).to.equal(false)
  })

  it('when a probability is below one tick, it returns false; a price of another market may be', () => {
    const binary = { ...rules, kind: 'binary_future' as const, tick: e18('0.001') as Price }
    expect(isReportUsable(report('0.001', 100_000), null, binary, AS_OF)).to.equal(true)
    expect(isReportUsable(report('0.000999999999999999', 100_000), null, binary, AS_OF)).to.equal(false)
    expect(isReportUsable(report('0.000000000000000001', 100_000), null, rules, AS_OF)).to.equal(true)
  })
})

describe('allowedMove', () => {
  it('when any series of reports moves as far as allowed, the price stays between 1 - S and e^S of the first', () => {
    const random = randomOf(7)
    const first = e18('100') as Price
    for (let run = 0; run < 500; run++) {
      const given = {
        kind: 'perpetual' as const,
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

  describe('given a binary market with any parameters that can be listed', () => {
    const LEAST_GAP = 1_800n
    const probability = fc.bigInt({ min: 1n, max: ONE })
    const listed = fc
      .record({
        moveBase: fc.bigInt({ min: 0n, max: 1_000_000n }),
        moveSlope: fc.bigInt({ min: 0n, max: 1_000_000n }),
        moveWindow: fc.integer({ min: 1_000, max: 60_000 }),
      })
      .map(({ moveBase, moveSlope, moveWindow }) => {
        const least = (1_000_000n - moveBase + LEAST_GAP - 1n) / LEAST_GAP
        return {
          kind: 'binary_future' as const,
          moveBase,
          moveSlope: maxOf(moveSlope, least),
          moveWindow: moveWindow as Millis,
        }
      })

    it('when two prices are any distance apart, the gap closes within 30 minutes', () => {
      fc.assert(
        fc.property(listed, probability, probability, fc.nat(), (given, from, to, later) => {
          const move = from > to ? from - to : to - from
          return allowedMove(from as Price, 1_800_000 + later, given) >= move
        }),
        { numRuns: 5_000 },
      )
    })

    it('when a probability and its complement move, the same move is allowed', () => {
      fc.assert(
        fc.property(listed, probability, fc.nat({ max: 3_600_000 }), (given, price, elapsed) => {
          const complement = (ONE - price) as Price
          return allowedMove(price as Price, elapsed, given) === allowedMove(complement, elapsed, given)
        }),
      )
    })

    it('when any series of reports moves as far as allowed, the price ends at most S from the first', () => {
      const gaps = fc.array(fc.tuple(fc.nat({ max: 5_000 }), fc.boolean()), { maxLength: 40 })
      fc.assert(
        fc.property(listed, probability, gaps, (given, from, steps) => {
          let [price, sum] = [from, 0]
          for (const [gap, rises] of steps) {
            const move = allowedMove(price as Price, gap, given)
            price = rises ? minOf(ONE, price + move) : maxOf(1n, price - move)
            sum += (Number(given.moveBase) / 1e6 / given.moveWindow + Number(given.moveSlope) / 1e9) * gap
          }
          return Math.abs(Number(price) - Number(from)) / 1e18 <= sum + 1e-12
        }),
      )
    })
  })
})

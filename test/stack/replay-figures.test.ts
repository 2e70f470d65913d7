import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Price, Quantity, Steps, Ticks } from '../../domain/units.ts'
import { createMapping } from '../../stack/replay/mapping.ts'
import { compare, percentile } from '../../stack/replay/statistics.ts'

const E18 = 10n ** 18n
const spec = {
  tick: (E18 / 100n) as Price,
  step: (E18 / 100n) as Quantity,
  minPrice: 1 as Ticks,
  minQuantity: 2 as Steps,
  maxQuantity: 1000 as Steps,
} as MarketSpec
const mapping = createMapping({ spec, oracle: (230n * E18) as Price, first: 585n * E18 })

describe('stack/replay mapping', () => {
  it('when prices are mapped, the first trade maps to the oracle price and others keep their distance in per cent', () => {
    expect(mapping.ticks(585n * E18)).to.equal(23_000)
    expect(mapping.ticks((585n * E18 * 101n) / 100n)).to.equal(23_230)
    expect(mapping.oraclePrice((585n * E18) / 2n)).to.equal(115n * E18)
  })

  it("when one price is at most another, its ticks are at most the other's", () => {
    const price = fc.bigInt({ min: E18, max: 10_000n * E18 })
    fc.assert(
      fc.property(price, price, (a, b) => {
        if (a <= b) expect(mapping.ticks(a)).to.be.at.most(mapping.ticks(b))
      }),
    )
  })

  it("when a size is mapped, it is whole steps between the market's minimum and maximum", () => {
    expect(mapping.steps(E18)).to.equal(100)
    expect(mapping.steps(1n)).to.equal(2)
    expect(mapping.steps(1000n * E18)).to.equal(1000)
  })
})

describe('stack/replay statistics', () => {
  it('when points are compared, each is paired with the latest recorded point before it', () => {
    const theirs = [10, 20, 30].map((at) => ({ at, price: at * 10 }))
    const ours = [
      { at: 5, price: 1 },
      { at: 10, price: 103 },
      { at: 29, price: 199 },
      { at: 99, price: 305 },
    ]
    const { pairs, difference, correlation } = compare(ours, theirs)
    expect([pairs, difference]).to.deep.equal([3, 3])
    expect(correlation).to.be.greaterThan(0.99)
  })

  it('when a series is constant, the correlation is null', () => {
    const still = [1, 2, 3].map((at) => ({ at, price: 5 }))
    expect(compare(still, still).correlation).to.equal(null)
  })

  it('when percentiles are computed, they are values by rank, and NaN without values', () => {
    const values = Array.from({ length: 100 }, (_, index) => 100 - index)
    expect([percentile(values, 0.5), percentile(values, 0.99), percentile(values, 1)]).to.deep.equal([
      50, 99, 100,
    ])
    expect(percentile([], 0.5)).to.be.NaN
  })
})

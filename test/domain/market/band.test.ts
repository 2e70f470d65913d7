import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { priceBand, tickNearest } from '../../../domain/market/band.ts'
import { ONE, type Price, type Rate } from '../../../domain/units.ts'
import { binary, markets, perpetual, price } from '../../support/markets.ts'

describe('priceBand', () => {
  const table = [
    { name: 'on the grid', spec: perpetual, oracle: '100', lo: 950, hi: 1050 },
    { name: 'between ticks', spec: perpetual, oracle: '100.33', lo: 954, hi: 1053 },
    {
      name: 'one whose band ends on a tick',
      spec: perpetual,
      oracle: '1.05',
      lo: 10,
      hi: 11,
    },
    { name: 'between ticks that are wider than the band', spec: perpetual, oracle: '0.55', lo: 5, hi: 6 },
    { name: 'below one tick', spec: perpetual, oracle: '0.05', lo: 1, hi: 1 },
    { name: 'near 1 on a binary market', spec: binary, oracle: '0.95', lo: 760, hi: 999 },
    { name: '1 on a binary market', spec: binary, oracle: '1', lo: 800, hi: 999 },
    { name: 'near 0 on a binary market', spec: binary, oracle: '0.0004', lo: 1, hi: 1 },
  ]
  for (const { name, spec, oracle, lo, hi } of table) {
    it(`when the oracle price is ${name}, the band is ${lo} to ${hi}`, () => {
      expect(priceBand(spec, price(oracle))).to.deep.equal({ lo, hi })
    })
  }

  it('when the oracle price moves, the band moves with it, is never empty, and exceeds its width by at most the tick at O', () => {
    const anyOracle = fc.bigInt({ min: 10n ** 14n, max: 10n ** 24n })
    const anyRate = fc.integer({ min: 0, max: 500_000 }).map((ppm) => (BigInt(ppm) * 10n ** 12n) as Rate)
    fc.assert(
      fc.property(fc.constantFrom(...markets), anyOracle, anyOracle, anyRate, (base, a, b, mtb) => {
        const spec = { ...base, mtbLong: mtb, mtbShort: mtb }
        const cap = (oracle: bigint): Price =>
          (base.kind === 'binary_future' && oracle > ONE ? ONE : oracle) as Price
        const [low, high] = a < b ? [cap(a), cap(b)] : [cap(b), cap(a)]
        const [under, over] = [priceBand(spec, low), priceBand(spec, high)]
        expect(under.lo).to.be.at.least(1)
        expect(under.lo).to.be.at.most(under.hi)
        expect(under.lo).to.be.at.most(over.lo)
        expect(under.hi).to.be.at.most(over.hi)
        expect(BigInt(over.hi) * spec.tick < (high * (ONE + mtb)) / ONE + spec.tick).to.equal(true)
      }),
    )
  })
})

describe('tickNearest', () => {
  it('when a price is half way between ticks, it rounds down', () => {
    expect(tickNearest(perpetual, price('100.05'))).to.equal(1000)
    expect(tickNearest(perpetual, price('100.050000000000000001'))).to.equal(1001)
    expect(tickNearest(perpetual, price('100'))).to.equal(1000)
  })
})

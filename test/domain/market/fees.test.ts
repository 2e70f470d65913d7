import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { closingFee, feeAllowancePerStep, feeOf, fillFee, pairFees } from '../../../domain/market/fees.ts'
import { notionalAt, oneInTicks } from '../../../domain/market/market.ts'
import { ONE, type Steps, type Ticks } from '../../../domain/units.ts'
import { binary, future, markets, perpetual, quote, rate, steps, ticks } from '../../support/markets.ts'

const rates = { makerFee: rate('0'), takerFee: rate('0.02') }

describe('feeOf', () => {
  it('when the market is a perpetual, it is 5 bps of notional', () => {
    expect(feeOf(perpetual, ticks(1_000_000), steps(2_000), perpetual.takerFee)).to.equal(quote('100'))
  })

  it('when the market is a numeric future, it is 20 bps of notional', () => {
    expect(feeOf(future, ticks(200), steps(1_000), future.takerFee)).to.equal(quote('2'))
  })

  const binaryVectors = [
    { p: 500, q: 1, fee: '0.005' },
    { p: 100, q: 1, fee: '0.0018' },
    { p: 900, q: 1, fee: '0.0018' },
    { p: 370, q: 10, fee: '0.04662' },
    { p: 1, q: 1, fee: '0.00001998' },
  ]
  for (const { p, q, fee } of binaryVectors) {
    it(`when a binary fills ${q} at ${p / 1000}, it is ${fee}`, () => {
      expect(feeOf(binary, ticks(p), steps(q), binary.takerFee)).to.equal(quote(fee))
    })
  }

  it('when the tick is finer than listing allows, it rounds down after each step, not once at the end', () => {
    const fine = { ...binary, tick: (10n ** 8n) as typeof binary.tick }
    const [p, c, q] = [123_456_789_000_000_000n, rate('0.019'), 1000n * ONE]
    const variance = (p * (ONE - p)) / ONE
    expect(feeOf(fine, Number(p / fine.tick) as Ticks, steps(1000), c)).to.equal(
      (((variance * c) / ONE) * q) / ONE,
    )
  })

  it('when fees are off, it is zero', () => {
    for (const spec of markets) expect(feeOf(spec, ticks(500), steps(7), rate('0'))).to.equal(0n)
  })

  it('when a binary price moves away from 0.50, it falls symmetrically', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 999 }), fc.integer({ min: 1, max: 1e9 }), (p, q) => {
        const fee = feeOf(binary, ticks(p), steps(q), binary.takerFee)
        expect(fee).to.equal(feeOf(binary, (oneInTicks(binary) - p) as Ticks, steps(q), binary.takerFee))
        expect(fee <= feeOf(binary, ticks(500), steps(q), binary.takerFee)).to.equal(true)
      }),
    )
  })

  it('when a fill is split on a listed market, the fees of the parts add up to the fee of the whole', () => {
    const anyMarket = fc.constantFrom(...markets)
    const anyPart = fc.integer({ min: 1, max: 1e6 })
    fc.assert(
      fc.property(anyMarket, fc.integer({ min: 1, max: 999 }), anyPart, anyPart, (spec, p, a, b) => {
        const of = (q: number) => feeOf(spec, ticks(p), q as Steps, spec.takerFee)
        expect(of(a) + of(b)).to.equal(of(a + b))
        if (spec.kind !== 'binary_future') {
          expect(of(a) * ONE).to.equal(notionalAt(spec, ticks(p), steps(a)) * spec.takerFee)
        }
      }),
    )
  })
})

describe('pairFees and fillFee', () => {
  it('when the buyer is the maker, each side pays its own rate', () => {
    const pair = { price: ticks(370), steps: steps(10), makerSide: 'LONG' as const }
    expect(pairFees(binary, pair, rates)).to.deep.equal({ long: 0n, short: quote('0.04662') })
    expect(pairFees(binary, { ...pair, makerSide: 'SHORT' }, rates)).to.deep.equal({
      long: quote('0.04662'),
      short: 0n,
    })
  })

  it('when an order has several pairs, it pays their sum', () => {
    const both = { makerFee: rate('0.0001'), takerFee: rate('0.0005') }
    const shares = { maker: steps(30), taker: steps(70) }
    const pairs =
      pairFees(perpetual, { price: ticks(999), steps: steps(30), makerSide: 'LONG' }, both).long +
      pairFees(perpetual, { price: ticks(999), steps: steps(70), makerSide: 'SHORT' }, both).long
    expect(fillFee(perpetual, ticks(999), shares, both)).to.equal(pairs)
  })
})

describe('closingFee', () => {
  it('when the fee exceeds the proceeds, it is capped by them', () => {
    expect(closingFee(quote('2'), quote('1'))).to.equal(quote('1'))
    expect(closingFee(quote('2'), quote('3'))).to.equal(quote('2'))
    expect(closingFee(quote('2'), quote('0'))).to.equal(0n)
  })
})

describe('feeAllowancePerStep', () => {
  it('when the market is binary, it is the fee at 0.50 at any price', () => {
    expect(feeAllowancePerStep(binary, ticks(3))).to.equal(quote('0.005'))
  })

  it('when an order fills at its price or a lower one, it covers the fee', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...markets),
        fc.integer({ min: 1, max: 999 }),
        fc.integer({ min: 0, max: 998 }),
        fc.integer({ min: 1, max: 1e6 }),
        (spec, p, less, q) => {
          const paid = feeOf(spec, ticks(Math.max(1, p - less)), steps(q), spec.takerFee)
          expect(paid <= feeAllowancePerStep(spec, ticks(p)) * BigInt(q)).to.equal(true)
        },
      ),
    )
  })
})

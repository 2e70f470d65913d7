import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { closingFee, feeAllowancePerStep, feeOf, fillFee, pairFees } from '../../../domain/market/fees.ts'
import { notionalAt, oneInTicks } from '../../../domain/market/market.ts'
import { ONE, type Steps, type Ticks } from '../../../domain/units.ts'
import { binary, future, markets, perpetual, quote, rate, steps, ticks } from '../../support/markets.ts'

const rates = { makerFee: rate('0'), takerFee: rate('0.02') }

describe('feeOf', () => {
  it('given a perpetual, it takes 5 bps of notional', () => {
    expect(feeOf(perpetual, ticks(1_000_000), steps(2_000), perpetual.takerFee)).to.equal(quote('100'))
  })

  it('given a numeric future, it takes 20 bps of notional', () => {
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
    it(`given a binary at ${p / 1000} and quantity ${q}, it takes ${fee}`, () => {
      expect(feeOf(binary, ticks(p), steps(q), binary.takerFee)).to.equal(quote(fee))
    })
  }

  it('given a tick finer than listing allows, it rounds down after each step, not once at the end', () => {
    const fine = { ...binary, tick: (10n ** 8n) as typeof binary.tick }
    const [p, c, q] = [123_456_789_000_000_000n, rate('0.019'), 1000n * ONE]
    const variance = (p * (ONE - p)) / ONE
    expect(feeOf(fine, Number(p / fine.tick) as Ticks, steps(1000), c)).to.equal(
      (((variance * c) / ONE) * q) / ONE,
    )
  })

  it('is zero while fees are off', () => {
    for (const spec of markets) expect(feeOf(spec, ticks(500), steps(7), rate('0'))).to.equal(0n)
  })

  it('is symmetric around 0.50 on a binary, and largest there', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 999 }), fc.integer({ min: 1, max: 1e9 }), (p, q) => {
        const fee = feeOf(binary, ticks(p), steps(q), binary.takerFee)
        expect(fee).to.equal(feeOf(binary, (oneInTicks(binary) - p) as Ticks, steps(q), binary.takerFee))
        expect(fee <= feeOf(binary, ticks(500), steps(q), binary.takerFee)).to.equal(true)
      }),
    )
  })

  it('of parts adds up to the fee of the whole: nothing rounds on a listed market', () => {
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
  it('given the buyer is the maker, each side pays its own rate', () => {
    const pair = { price: ticks(370), steps: steps(10), makerSide: 'LONG' as const }
    expect(pairFees(binary, pair, rates)).to.deep.equal({ long: 0n, short: quote('0.04662') })
    expect(pairFees(binary, { ...pair, makerSide: 'SHORT' }, rates)).to.deep.equal({
      long: quote('0.04662'),
      short: 0n,
    })
  })

  it('an order pays the sum of its pairs', () => {
    const both = { makerFee: rate('0.0001'), takerFee: rate('0.0005') }
    const shares = { maker: steps(30), taker: steps(70) }
    const pairs =
      pairFees(perpetual, { price: ticks(999), steps: steps(30), makerSide: 'LONG' }, both).long +
      pairFees(perpetual, { price: ticks(999), steps: steps(70), makerSide: 'SHORT' }, both).long
    expect(fillFee(perpetual, ticks(999), shares, both)).to.equal(pairs)
  })
})

describe('closingFee', () => {
  it('is capped by the proceeds', () => {
    expect(closingFee(quote('2'), quote('1'))).to.equal(quote('1'))
    expect(closingFee(quote('2'), quote('3'))).to.equal(quote('2'))
    expect(closingFee(quote('2'), quote('0'))).to.equal(0n)
  })
})

describe('feeAllowancePerStep', () => {
  it('given a binary, it is the fee at 0.50 at any price', () => {
    expect(feeAllowancePerStep(binary, ticks(3))).to.equal(quote('0.005'))
  })

  it('covers the fee at the price and at every lower one', () => {
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

import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { FLAT, marginOf } from '../../../domain/positions/position.ts'
import { fundingPayment } from '../../../domain/prices/funding-payment.ts'
import type { FundingIndex, Quote, Steps } from '../../../domain/units.ts'

const END = 1n << 95n
const anyIndex = fc.bigInt({ min: -END, max: END }) as fc.Arbitrary<FundingIndex>
const anySize = fc.integer({ min: -(2 ** 53 - 1), max: 2 ** 53 - 1 }) as fc.Arbitrary<Steps>
const sumOf = (wei: readonly bigint[]): bigint => wei.reduce((sum, each) => sum + each, 0n)

describe('fundingPayment', () => {
  it('when the index rises, a long pays and a short receives', () => {
    const index = (wei: bigint) => wei as FundingIndex
    expect(fundingPayment(3 as Steps, index(5n), index(7n))).to.equal(-6n)
    expect(fundingPayment(-3 as Steps, index(5n), index(7n))).to.equal(6n)
  })

  it('when the way of the index is divided anywhere, the payments add up to that of the whole way', () => {
    fc.assert(
      fc.property(anySize, fc.array(anyIndex, { minLength: 2 }), (size, indexes) => {
        const payments = indexes
          .slice(1)
          .map((to, at) => fundingPayment(size, indexes[at] as FundingIndex, to))
        const whole = fundingPayment(size, indexes[0] as FundingIndex, indexes.at(-1) as FundingIndex)
        expect(sumOf(payments)).to.equal(whole)
      }),
    )
  })

  it('when sizes sum to zero, the payments of all accounts sum to zero', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -1e9, max: 1e9 })), anyIndex, anyIndex, (sizes, from, to) => {
        const all = [...sizes, -sizes.reduce((sum, size) => sum + size, 0)]
        expect(sumOf(all.map((size) => fundingPayment(size as Steps, from, to)))).to.equal(0n)
      }),
    )
  })

  it('when the index moves, the payment is the change of the margin', () => {
    fc.assert(
      fc.property(anySize, anyIndex, anyIndex, fc.bigInt(), (size, from, to, folded) => {
        const position = { ...FLAT, size, foldedMargin: folded as Quote }
        expect(fundingPayment(size, from, to)).to.equal(marginOf(position, to) - marginOf(position, from))
      }),
    )
  })
})

import { expect } from 'chai'
import { describe, it } from 'mocha'
import { FLAT, type Position } from '../../../domain/positions/position.ts'
import { FREE_CEILING, type PartFill, refusedCredit } from '../../../domain/settlement/refused-credit.ts'
import type { Quote, UserId } from '../../../domain/units.ts'
import { index, perpetual, price, quote, rate, steps, ticks } from '../../support/markets.ts'

const terms = {
  price: ticks(1000),
  oracle: price('100'),
  fundingIndex: index(0n),
  makerFee: rate('0'),
  takerFee: rate('0.0005'),
}
const long: Position = {
  size: steps(1000),
  entryNotional: quote('100'),
  foldedMargin: quote('10'),
  leverage: 10,
}
const [seller, buyer] = [1, 2] as [UserId, UserId]
const fill = (account: UserId, side: 'LONG' | 'SHORT', count: number): PartFill => ({
  ...{ account, side, leverage: 10, limit: ticks(1000) },
  ...{ steps: steps(count), takerSteps: side === 'SHORT' ? steps(count) : steps(0) },
})
/** Closing 1000 steps credits the margin of 10 less a fee of 0.05. */
const CREDIT = quote('9.95')

const refusedWith = (free: bigint, fills: readonly PartFill[]) =>
  refusedCredit({
    ...{ spec: perpetual, terms, fills },
    positions: (account) => (account === seller ? long : FLAT),
    freeOf: (account) => (account === seller ? free : 0n) as Quote,
  })

describe('refusedCredit', () => {
  const closing = [fill(buyer, 'LONG', 1000), fill(seller, 'SHORT', 1000)]

  it('when the credit fills the account exactly to the ceiling, it finds no account', () => {
    expect(refusedWith(FREE_CEILING - CREDIT, closing)).to.equal(null)
  })

  it('when the credit exceeds the ceiling by one wei, it finds the account', () => {
    expect(refusedWith(FREE_CEILING - CREDIT + 1n, closing)).to.equal(seller)
  })

  it('when the runs of an account are apart, it adds up their credits', () => {
    const apart = [fill(seller, 'SHORT', 500), fill(buyer, 'LONG', 1000), fill(seller, 'SHORT', 500)]
    expect(refusedWith(FREE_CEILING - CREDIT, apart)).to.equal(null)
    expect(refusedWith(FREE_CEILING - CREDIT + 1n, apart)).to.equal(seller)
  })

  it('when an account at the ceiling is debited, it finds no account', () => {
    expect(refusedWith(FREE_CEILING, [fill(seller, 'LONG', 100), fill(buyer, 'SHORT', 100)])).to.equal(null)
  })
})

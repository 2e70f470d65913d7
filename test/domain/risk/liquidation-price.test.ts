import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { isLiquidatable } from '../../../domain/positions/margin.ts'
import { FLAT } from '../../../domain/positions/position.ts'
import { liquidationPrice } from '../../../domain/risk/liquidation-price.ts'
import { ONE, type Price } from '../../../domain/units.ts'
import { binary, index, perpetual, quote, steps } from '../../support/markets.ts'
import { anyAdmission } from '../support/any-admission.ts'

const at = (wei: bigint) => wei as Price

describe('liquidationPrice', () => {
  it('when a position can be liquidated, it is the first eligible price, to the wei', () => {
    let found = 0
    fc.assert(
      fc.property(anyAdmission, ({ facts: { spec, position, fundingIndex } }) => {
        const bound = liquidationPrice(spec, position, fundingIndex)
        if (bound === null) return
        found++
        const eligible = (wei: bigint) => isLiquidatable(spec, position, fundingIndex, at(wei))
        const beyond = position.size > 0 ? -1n : 1n
        expect(eligible(bound), 'at it').to.equal(true)
        if (bound > 1n && (spec.kind !== 'binary_future' || bound < ONE)) {
          expect(eligible(bound + beyond), 'beyond it').to.equal(true)
          expect(eligible(bound - beyond), 'before it').to.equal(false)
        }
      }),
      { numRuns: 2_000 },
    )
    expect(found).to.be.greaterThan(500)
  })

  it('when no price makes the position eligible, it is null', () => {
    fc.assert(
      fc.property(
        anyAdmission,
        fc.bigInt({ min: 1n, max: 2_000n }),
        ({ facts: { spec, position, fundingIndex } }, share) => {
          if (liquidationPrice(spec, position, fundingIndex) !== null) return
          const top = spec.kind === 'binary_future' ? ONE : 200n * ONE
          expect(isLiquidatable(spec, position, fundingIndex, at((top * share) / 2_000n))).to.equal(false)
        },
      ),
      { numRuns: 1_000 },
    )
    expect(liquidationPrice(perpetual, FLAT, index(0n))).to.equal(null)
    const paid = { size: steps(10), entryNotional: quote('5'), foldedMargin: quote('5'), leverage: 1 }
    expect(liquidationPrice(binary, paid, index(0n))).to.equal(null)
    expect(liquidationPrice(perpetual, paid, index(0n))).to.equal(null)
    const short = { size: steps(-10), entryNotional: quote('5'), foldedMargin: quote('5'), leverage: 1 }
    expect(liquidationPrice(binary, short, index(0n))).to.equal(null)
  })
})

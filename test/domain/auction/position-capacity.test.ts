import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { PositionCapacities } from '../../../domain/auction/position-capacity.ts'
import { priceBand } from '../../../domain/market/band.ts'
import { mayOpen } from '../../../domain/positions/margin.ts'
import { bankruptcyPrice, type Position } from '../../../domain/positions/position.ts'
import { ONE, type Price, type Quote, type Seq, type Steps } from '../../../domain/units.ts'
import { type AnyBatch, anyBatch } from '../support/any-auction.ts'
import { oracle100, positionAt, resting, roundMarket } from '../support/resting.ts'

const bothSides = [resting({ seq: 1 as Seq }), resting({ seq: 2 as Seq, side: 'SHORT' })]

/** The capacity by the exact rules, with the bankruptcy price clamped to the band. */
function exact({ spec, oracle, fundingIndex }: AnyBatch, position: Position) {
  const { lo, hi } = priceBand(spec, oracle)
  const price = bankruptcyPrice(spec, position, fundingIndex)
  return {
    size: position.size,
    reducingSide: position.size > 0 ? 'SHORT' : 'LONG',
    bankruptcyLimit: position.size > 0 ? Math.max(lo, price) : Math.min(hi, price),
    mayOpen: mayOpen(spec, position, fundingIndex, oracle),
  }
}

function estimated({ spec, oracle, fundingIndex }: AnyBatch, position: Position) {
  const band = priceBand(spec, oracle)
  const capacity = new PositionCapacities(spec, band, oracle, fundingIndex).of(position, bothSides)
  const bound =
    position.size > 0
      ? Math.max(band.lo, capacity.bankruptcyLimit)
      : Math.min(band.hi, capacity.bankruptcyLimit)
  return { ...capacity, bankruptcyLimit: bound }
}

const held = (batch: AnyBatch): Position[] =>
  [...batch.openPositions.values()].filter(({ size }) => size !== 0)

describe('PositionCapacities', () => {
  it('when positions of any health and size are computed in doubles, the result equals the exact rules', () => {
    const anyScale = fc.integer({ min: 0, max: 40 }).map((power) => 2 ** power)
    fc.assert(
      fc.property(anyBatch({ accounts: 8 }), anyScale, (batch, scale) => {
        for (const position of held(batch)) {
          const scaled = {
            ...position,
            size: (position.size * scale) as Steps,
            entryNotional: (position.entryNotional * BigInt(scale)) as Quote,
            foldedMargin: (position.foldedMargin * BigInt(scale)) as Quote,
          }
          expect(estimated(batch, scaled)).to.deep.equal(exact(batch, scaled))
        }
      }),
      { numRuns: 500 },
    )
  })

  it('when a position just meets IMR or its bankruptcy price, the result is exact to the wei and to the tick', () => {
    const anyDraft = fc.record({
      size: fc.integer({ min: 1, max: 2 ** 40 }),
      isLong: fc.boolean(),
      entry: fc.integer({ min: 80, max: 120 }),
      off: fc.bigInt({ min: -2n, max: 2n }),
      fraction: fc.bigInt({ min: 0n, max: ONE }),
      price: fc.integer({ min: 90, max: 110 }),
      requires: fc.boolean(),
    })
    fc.assert(
      fc.property(anyDraft, ({ size, isLong, entry, off, fraction, price, requires }) => {
        const oracle = (oracle100 + fraction) as Price
        const sign = isLong ? 1n : -1n
        const gain = sign * (oracle - BigInt(entry) * ONE)
        const atRequirement = (roundMarket.imr * oracle) / ONE - gain
        const atBankruptcy = sign * BigInt(entry - price) * ONE
        const margin = requires ? atRequirement : atBankruptcy
        const position = positionAt(roundMarket, { size: isLong ? size : -size, entry, margin })
        const nudged = { ...position, foldedMargin: (position.foldedMargin + off) as Quote }
        const batch = { spec: roundMarket, oracle, fundingIndex: 0n } as unknown as AnyBatch
        expect(estimated(batch, nudged)).to.deep.equal(exact(batch, nudged))
      }),
      { numRuns: 1000 },
    )
  })
})

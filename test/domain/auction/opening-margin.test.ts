import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { OpeningMargins } from '../../../domain/auction/opening-margin.ts'
import { priceBand } from '../../../domain/market/band.ts'
import { coveredSteps } from '../../../domain/orders/reservation.ts'
import { openingBound } from '../../../domain/positions/margin.ts'
import type { Price, Steps } from '../../../domain/units.ts'
import { anyBatch } from '../support/any-auction.ts'

describe('OpeningMargins', () => {
  it('when any order is bounded, the bound equals openingBound, or has the same effect for a limit sell', () => {
    fc.assert(
      fc.property(anyBatch({ minOrders: 8 }), ({ spec, oracle, orders }) => {
        const openingMargins = new OpeningMargins(spec, oracle, priceBand(spec, oracle))
        for (const order of orders) {
          const exact = openingBound(spec, order, oracle)
          const isLimitSell = order.side === 'SHORT' && order.type === 'LIMIT'
          const effective = (bound: number): number => (isLimitSell ? Math.max(order.limit, bound) : bound)
          expect(effective(openingMargins.boundFor(order))).to.equal(effective(exact))
        }
      }),
      { numRuns: 1000 },
    )
  })

  it('when the band has risen by any amount, it covers as many steps as coveredSteps', () => {
    const anyRise = fc.bigInt({ min: -50n, max: 1500n })
    const anySize = fc.integer({ min: 1, max: 240 }).map((power) => Math.round(2 ** (power / 10)))
    fc.assert(
      fc.property(
        anyBatch({ minOrders: 8 }),
        anyRise,
        anySize,
        ({ spec, oracle: old, orders }, rise, size) => {
          const oracle = (old + (rise * old) / 1000n) as Price
          const band = priceBand(spec, oracle)
          const openingMargins = new OpeningMargins(spec, oracle, band)
          for (const order of orders) {
            const sized = { ...order, remaining: size as Steps, openable: (order.openable * size) as Steps }
            expect(openingMargins.coveredSteps(sized)).to.equal(coveredSteps(spec, sized, band, oracle))
          }
        },
      ),
    )
  })
})

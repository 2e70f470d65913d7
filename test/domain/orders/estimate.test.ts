/** The estimated protection of a market order against the auction's. `sizing.test.ts` has the other properties of estimates. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { clear } from '../../../domain/auction/auction.ts'
import { referenceSteps } from '../../../domain/auction/protection.ts'
import { Book } from '../../../domain/book/book.ts'
import { priceBand } from '../../../domain/market/band.ts'
import { DEFAULT_PRICE_PROTECTION } from '../../../domain/market/price-protection.ts'
import { expectedProtection } from '../../../domain/orders/estimate.ts'
import { FLAT } from '../../../domain/positions/position.ts'
import type { Millis, Seq, UserId } from '../../../domain/units.ts'
import { binary, future, index, perpetual, price, steps, ticks } from '../../support/markets.ts'
import { resting } from '../support/resting.ts'

const TAKER = 9 as UserId

const anyMarket = fc.constantFrom(
  { spec: perpetual, oracle: price('100'), middle: 1000 },
  { spec: future, oracle: price('50'), middle: 100 },
  { spec: binary, oracle: price('0.5'), middle: 500 },
)
const anyQuotes = fc.array(
  fc.record({
    account: fc.integer({ min: 1, max: 3 }),
    off: fc.integer({ min: -20, max: 60 }),
    count: fc.integer({ min: 1, max: 40 }),
  }),
  { maxLength: 12 },
)

describe('expectedProtection', () => {
  it('when the standing orders are plain, unleveraged and of other accounts, it equals the protection in the auction', () => {
    let referenced = 0
    const anySide = fc.constantFrom('LONG' as const, 'SHORT' as const)
    fc.assert(
      fc.property(anyMarket, anySide, fc.boolean(), anyQuotes, (market, side, triggered, quotes) => {
        const { spec, oracle, middle } = market
        const facing = side === 'LONG' ? 'SHORT' : 'LONG'
        const risesAbove = facing === 'SHORT' && spec.kind !== 'binary_future'
        const standing = quotes.map(({ account, off, count }, at) => {
          const limit = ticks(side === 'LONG' ? middle + off : middle - off)
          const reservedPrice = risesAbove ? ticks(1_000_000) : limit
          const terms = { side: facing, limit, remaining: steps(count), reservedPrice } as const
          return resting({ ...terms, account: account as UserId, seq: (at + 1) as Seq })
        })
        const seq = (standing.length + 1) as Seq
        const taker = { side, triggered, type: 'MARKET', remaining: spec.minQuantity } as const
        const own = resting({ ...taker, seq, account: TAKER, reduceOnly: false, openable: steps(0) })
        const width = { priceProtection: DEFAULT_PRICE_PROTECTION[spec.kind] }
        const { protections } = clear({
          ...{ spec, oracle, ...width, book: Book.of([...standing, own]), positions: () => FLAT },
          ...{ fundingIndex: index(0n), asOf: 1 as Millis, standingSeq: (seq - 1) as Seq },
        })

        const levels = Map.groupBy(standing, ({ limit }) => limit)
        const depth = [...levels]
          .map(([limit, orders]) => ({
            price: limit,
            steps: steps(orders.reduce((sum, { remaining }) => sum + remaining, 0)),
          }))
          .sort((a, b) => (side === 'LONG' ? a.price - b.price : b.price - a.price))
          .slice(0, referenceSteps(spec))
        const order = { side, type: triggered ? ('STOP_MARKET' as const) : ('MARKET' as const) }
        const expected = expectedProtection(order, {
          ...{ spec, oracle, band: priceBand(spec, oracle), depth, ...width },
        })
        if (expected.level !== null) referenced++
        expect(protections).to.deep.equal([{ ...expected, seq }])
      }),
      { numRuns: 500 },
    )
    expect(referenced).to.be.greaterThan(50)
  })
})

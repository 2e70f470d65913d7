/** The estimated protection and fill of an order against the auction's. `sizing.test.ts` has the other properties of estimates. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { clear } from '../../../domain/auction/auction.ts'
import { referenceSteps } from '../../../domain/auction/protection.ts'
import { Book } from '../../../domain/book/book.ts'
import { priceBand } from '../../../domain/market/band.ts'
import { DEFAULT_PRICE_PROTECTION } from '../../../domain/market/price-protection.ts'
import { type EstimateInput, estimate, expectedProtection } from '../../../domain/orders/estimate.ts'
import { FLAT } from '../../../domain/positions/position.ts'
import type { Address, Millis, Quantity, Seconds, Seq, Ticks, UserId } from '../../../domain/units.ts'
import { binary, future, index, perpetual, price, quote, steps, ticks } from '../../support/markets.ts'
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

const ORDER = {
  ...{
    marketId: perpetual.marketId,
    maker: `0x${'0a'.repeat(20)}` as Address,
    trigger: 0 as Ticks,
    leverage: 1,
  },
  ...{ reduceOnly: false, expiration: 0 as Seconds, salt: 1n },
}

describe('estimate', () => {
  it('when the account has opposite orders, the estimated fill equals the auction fill with these orders in the book', () => {
    let prevented = 0
    const oracle = price('100')
    const anyOrder = fc.record({
      off: fc.integer({ min: -5, max: 5 }),
      count: fc.integer({ min: 10, max: 40 }),
    })
    const anyOrders = fc.array(anyOrder, { minLength: 1, maxLength: 6 })
    const anyTaker = fc.record({
      side: fc.constantFrom('LONG' as const, 'SHORT' as const),
      limit: fc.option(fc.integer({ min: -5, max: 5 })),
      count: fc.integer({ min: 10, max: 60 }),
    })
    fc.assert(
      fc.property(anyOrders, anyOrders, anyTaker, (others, own, { side, limit, count }) => {
        const facing = side === 'LONG' ? 'SHORT' : 'LONG'
        const rest = (orders: typeof own, first: number, account: number) =>
          orders.map(({ off, count: remaining }, at) => {
            const limit = ticks(1000 + off)
            const reservedPrice = facing === 'SHORT' ? ticks(1_000_000) : limit
            const terms = { side: facing, limit, remaining: steps(remaining), reservedPrice } as const
            return resting({ ...terms, account: account as UserId, seq: (first + at) as Seq })
          })
        const quotes = rest(others, 1, 1)
        const ownOrders = rest(own, 101, TAKER)
        const type = limit === null ? ('MARKET' as const) : ('LIMIT' as const)
        const signed = limit === null ? (0 as Ticks) : ticks(1000 + limit)
        const taker = resting({
          ...{ seq: 1000 as Seq, account: TAKER, side, type, limit: signed, remaining: steps(count) },
          reservedPrice: side === 'SHORT' ? ticks(1_000_000) : limit === null ? ticks(1050) : signed,
        })
        const market = { spec: perpetual, oracle, priceProtection: DEFAULT_PRICE_PROTECTION.perpetual }
        const clearing = clear({
          ...{ ...market, book: Book.of([...quotes, ...ownOrders, taker]), positions: () => FLAT },
          ...{ fundingIndex: index(0n), asOf: 1 as Millis, standingSeq: 999 as Seq },
        })
        const filled = clearing.fills.find(({ seq }) => seq === 1000)?.fill ?? 0

        const depth = [...Map.groupBy(quotes, ({ limit }) => limit)]
          .map(([price, orders]) => ({
            price,
            steps: steps(orders.reduce((sum, { remaining }) => sum + remaining, 0)),
          }))
          .sort((a, b) => (side === 'LONG' ? a.price - b.price : b.price - a.price))
        const input: EstimateInput = {
          ...{ ...market, band: priceBand(perpetual, oracle), depth, ownOrders, mode: 'open' as const },
          ...{ now: 1 as Millis, position: FLAT, fundingIndex: index(0n), available: quote('1000000') },
          resting: {
            ...{ count: 0, reducing: steps(0), openable: steps(0) },
            openNotional: quote('0'),
            reserved: quote('0'),
          },
        }
        const order = { ...ORDER, side, type, price: signed }
        const quantity = (BigInt(count) * perpetual.step) as Quantity
        const { fill } = estimate({ intent: 'units', quantity }, order, input)
        expect(fill?.fillable).to.equal(filled)
        if (filled > 0) expect(fill?.price).to.equal(clearing.price)
        const without = estimate({ intent: 'units', quantity }, order, { ...input, ownOrders: [] }).fill
        if (without?.fillable !== filled) prevented++
      }),
      { numRuns: 500 },
    )
    expect(prevented).to.be.greaterThan(50)
  })
})

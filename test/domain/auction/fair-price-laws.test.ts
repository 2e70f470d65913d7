/** Laws of a fair clearing price, over generated books. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { clear } from '../../../domain/auction/auction.ts'
import { bandLimit } from '../../../domain/auction/candidates.ts'
import type { RestingOrder } from '../../../domain/book/book.ts'
import { priceBand, tickNearest } from '../../../domain/market/band.ts'
import type { Seq, Steps, Ticks, UserId } from '../../../domain/units.ts'
import { type AnyBatch, AS_OF, anyBatch, toInput } from '../support/any-auction.ts'
import { resting } from '../support/resting.ts'

/** Orders of flat accounts without leverage, of which nothing but the limit binds the price. */
const plain = (fields: Partial<RestingOrder>): RestingOrder =>
  resting({ acceptedAt: AS_OF, leverage: 1, reservedPrice: 1_000_000 as Ticks, ...fields })

const inMarket = (batch: AnyBatch, orders: readonly RestingOrder[]): AnyBatch => ({
  ...batch,
  orders,
  openPositions: new Map(),
  standingSeq: orders.length as Seq,
})

const anySide = fc.constantFrom('LONG' as const, 'SHORT' as const)
const anySteps = fc.integer({ min: 1, max: 12 }).map((steps) => steps as Steps)
/** Markets that are not binary: there, leverage 1 and a wide reservation leave only the limits. */
const anyNumericMarket = fc.constantFrom(0, 1).chain((grid) => anyBatch({ grid }))

describe('laws of a fair price', () => {
  it('when two limits of equal size meet alone, they trade at the point between them nearest to the oracle price', () => {
    const anyLimits = fc.tuple(fc.integer({ min: -25, max: 25 }), fc.integer({ min: -25, max: 25 }))
    fc.assert(
      fc.property(anyNumericMarket, anyLimits, anySteps, (market, offsets, remaining) => {
        const { spec, oracle } = market
        const { lo, hi } = priceBand(spec, oracle)
        const middle = tickNearest(spec, oracle)
        const [sell, buy] = offsets.map((off) => middle + off).sort((a, b) => a - b) as [Ticks, Ticks]
        const batch = inMarket(market, [
          plain({ seq: 1 as Seq, account: 1 as UserId, limit: buy, remaining }),
          plain({ seq: 2 as Seq, account: 2 as UserId, side: 'SHORT', limit: sell, remaining }),
        ])
        const clearing = clear(toInput(batch))
        const [from, to] = [Math.max(sell, lo), Math.min(buy, hi)]
        // What a sell posts and what a buy pays binds the price of an opening far from the oracle price.
        if (from > to || clearing.outcome === 'no_cross') return
        expect(clearing.volume).to.equal(remaining)
        const [bottom, top] = boundsOf(batch, from, to)
        expect(clearing.price).to.equal(Math.max(bottom, Math.min(top, middle)))
      }),
      { numRuns: 400 },
    )
  })

  it('when a market order meets resting limits alone, it trades at the limit of the last one that it needs', () => {
    const anyLevels = fc.array(fc.tuple(fc.integer({ min: -3, max: 3 }), anySteps), {
      minLength: 1,
      maxLength: 8,
    })
    fc.assert(
      fc.property(anyNumericMarket, anySide, anyLevels, anySteps, (market, side, levels, size) => {
        const { spec, oracle } = market
        const middle = tickNearest(spec, oracle)
        const quotes = levels.map(([off, remaining], at) =>
          plain({
            seq: (at + 1) as Seq,
            account: (at + 1) as UserId,
            side: side === 'LONG' ? 'SHORT' : 'LONG',
            limit: (middle + off) as Ticks,
            remaining,
          }),
        )
        const seq = (quotes.length + 1) as Seq
        const taker = plain({ seq, account: 99 as UserId, side, type: 'MARKET', remaining: size })
        const clearing = clear(toInput(inMarket(market, [...quotes, taker])))
        const bound = clearing.protections[0]?.price as Ticks
        const sorted = quotes.toSorted((a, b) => (side === 'LONG' ? a.limit - b.limit : b.limit - a.limit))
        const reached = sorted.filter(({ limit }) => (side === 'LONG' ? limit <= bound : limit >= bound))
        if (reached.length === 0) {
          expect(clearing.outcome).to.equal('no_cross')
          return
        }
        let left = size as number
        const needed = reached.filter(({ remaining }) => {
          const isNeeded = left > 0
          left -= remaining
          return isNeeded
        })
        expect(clearing.price).to.equal(needed.at(-1)?.limit)
      }),
      { numRuns: 600 },
    )
  })

  it('when a bid above every other bid has at least the matched volume, it can trade, and alone if it takes all asks', () => {
    fc.assert(
      fc.property(anyNumericMarket, fc.integer({ min: 1, max: 3 }), fc.boolean(), (market, off, takesAll) => {
        const before = clear(toInput(market))
        if (before.outcome === 'no_cross') return
        const band = priceBand(market.spec, market.oracle)
        const protections = new Map(before.protections.map((one) => [one.seq, one]))
        const buys = market.orders.filter(({ side }) => side === 'LONG')
        const best = Math.max(before.price, ...buys.map((order) => bandLimit(order, band, protections)))
        const limit = (best + off) as Ticks
        const sells = market.orders.filter(({ side }) => side === 'SHORT')
        const all = sells.reduce((sum, { remaining }) => sum + remaining, 0)
        const remaining = (takesAll ? all : before.volume) as Steps
        const bid = plain({ seq: 1_000 as Seq, account: 99 as UserId, limit, remaining })
        if (limit > band.hi) return
        const after = clear(toInput(market, [...market.orders, bid]))
        expect(after.outcome).to.equal('cleared')
        expect(after.price).to.be.at.most(limit)
        expect(after.volume).to.be.at.least(before.volume)
        if (!takesAll) return
        expect(after.fills.find(({ seq }) => seq === bid.seq)?.fill).to.equal(after.volume)
      }),
      { numRuns: 1000 },
    )
  })
})

/** The interval in which both orders may trade: the margin of an opening may bind before the limits do. */
function boundsOf(batch: AnyBatch, from: number, to: number): [number, number] {
  const [buy, sell] = batch.orders as [RestingOrder, RestingOrder]
  const accepts = (order: RestingOrder, limit: number): boolean => {
    const side = order.side === 'LONG' ? 'SHORT' : 'LONG'
    const partner = plain({ ...order, seq: 9 as Seq, account: 9 as UserId, side, limit: limit as Ticks })
    const { price } = clear(toInput(inMarket(batch, [order, partner])))
    return price !== null && (side === 'SHORT' ? price >= limit : price <= limit)
  }
  const range = Array.from({ length: to - from + 1 }, (_, i) => from + i)
  const ticks = range.filter((tick) => accepts(buy, tick) || accepts(sell, tick))
  return [ticks[0] ?? from, ticks.at(-1) ?? to]
}

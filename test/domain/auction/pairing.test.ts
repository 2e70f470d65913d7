import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { pairUp, type Share, tally } from '../../../domain/auction/pairing.ts'
import type { RestingOrder } from '../../../domain/book/book.ts'
import { InvariantError } from '../../../domain/invariant.ts'
import { type MarketSpec, priceOf, quantityOf } from '../../../domain/market/market.ts'
import { ONE, type Price, type Seq, type Steps } from '../../../domain/units.ts'
import { binary, future, perpetual, rate, ticks } from '../../support/markets.ts'
import { resting } from '../support/resting.ts'

const specs: readonly MarketSpec[] = [
  { ...perpetual, makerFee: rate('0.0002') },
  future,
  { ...binary, tick: rate('0.01') as bigint as Price, makerFee: rate('0.005') },
]

/** Both sides of a batch with equal totals: excess steps are subtracted from the last orders of the larger side. */
const anySides = fc
  .record({
    spec: fc.constantFrom(...specs),
    orders: fc.array(
      fc.record({
        side: fc.constantFrom('LONG' as const, 'SHORT' as const),
        type: fc.constantFrom('MARKET' as const, 'LIMIT' as const),
        steps: fc.integer({ min: 1, max: 9 }),
      }),
      { minLength: 2, maxLength: 20, size: 'max' },
    ),
  })
  .map(({ spec, orders }) => {
    const shares = orders.map(({ side, type, steps }, i) => ({
      order: resting({ seq: (i + 1) as Seq, side, type }),
      steps: steps as Steps,
    }))
    const ofSide = (side: string): Share[] => shares.filter(({ order }) => order.side === side)
    const volume = Math.min(sum(ofSide('LONG')), sum(ofSide('SHORT')))
    return { spec, buys: cutTo(ofSide('LONG'), volume), sells: cutTo(ofSide('SHORT'), volume), volume }
  })

const sum = (shares: readonly Share[]): number => shares.reduce((total, { steps }) => total + steps, 0)

function cutTo(shares: readonly Share[], volume: number): Share[] {
  let left = volume
  return shares.flatMap(({ order, steps }) => {
    const used = Math.min(steps, left)
    left -= used
    return used > 0 ? [{ order, steps: used as Steps }] : []
  })
}

const price = ticks(37)

describe('pairUp', () => {
  it('law 15: when any shares are paired, every order gets exactly its share, in at most n + m - 1 pairs', () => {
    fc.assert(
      fc.property(anySides, ({ spec, buys, sells, volume }) => {
        const pairs = pairUp(spec, price, buys, sells)
        const tallies = tally(pairs)
        for (const { order, steps } of [...buys, ...sells]) {
          const { taker, maker } = tallies.get(order.seq) ?? { taker: 0, maker: 0 }
          expect(taker + maker).to.equal(steps)
        }
        expect(pairs.length).to.be.at.most(Math.max(0, buys.length + sells.length - 1))
        expect(pairs.every(({ steps }) => steps > 0)).to.equal(true)
        expect(pairs.reduce((total, { steps }) => total + steps, 0)).to.equal(volume)
      }),
    )
  })

  it('law 15: when market orders exceed the limit orders, they meet each other only for the excess', () => {
    fc.assert(
      fc.property(anySides, ({ spec, buys, sells, volume }) => {
        const typeOf = new Map([...buys, ...sells].map(({ order }) => [order.seq, order.type]))
        const isMarket = (seq: Seq): boolean => typeOf.get(seq) === 'MARKET'
        const markets = (shares: readonly Share[]): number =>
          sum(shares.filter(({ order }) => order.type === 'MARKET'))
        const met = pairUp(spec, price, buys, sells)
          .filter(({ buySeq, sellSeq }) => isMarket(buySeq) && isMarket(sellSeq))
          .reduce((total, { steps }) => total + steps, 0)
        expect(met).to.equal(Math.max(0, markets(buys) + markets(sells) - volume))
      }),
    )
  })

  it('law 15: when orders are paired, the maker is the limit order, of one type the earlier, and fees follow the schedule', () => {
    fc.assert(
      fc.property(anySides, ({ spec, buys, sells }) => {
        const orders = new Map([...buys, ...sells].map(({ order }) => [order.seq, order]))
        for (const pair of pairUp(spec, price, buys, sells)) {
          const buy = orders.get(pair.buySeq) as RestingOrder
          const sell = orders.get(pair.sellSeq) as RestingOrder
          const earlier = Math.min(buy.seq, sell.seq)
          const maker = buy.type === sell.type ? earlier : buy.type === 'LIMIT' ? buy.seq : sell.seq
          expect(pair.makerSeq).to.equal(maker)
          expect(pair.buyFee).to.equal(feeAt(spec, pair.steps, buy.seq === maker))
          expect(pair.sellFee).to.equal(feeAt(spec, pair.steps, sell.seq === maker))
        }
      }),
    )
  })

  it('when the sides have unequal totals, it throws', () => {
    const one = (side: 'LONG' | 'SHORT', steps: number): Share[] => [
      { order: resting({ side }), steps: steps as Steps },
    ]
    expect(() => pairUp(perpetual, price, one('LONG', 2), one('SHORT', 1))).to.throw(InvariantError)
    expect(() => pairUp(perpetual, price, one('LONG', 1), one('SHORT', 2))).to.throw(InvariantError)
  })
})

/** The fee schedule of the contract with traders, computed independently. */
function feeAt(spec: MarketSpec, steps: Steps, isMaker: boolean): bigint {
  const p = priceOf(spec, price)
  const fraction = isMaker ? spec.makerFee : spec.takerFee
  if (spec.kind !== 'binary_future') return (((p * quantityOf(spec, steps)) / ONE) * fraction) / ONE
  return (((((p * (ONE - p)) / ONE) * fraction) / ONE) * quantityOf(spec, steps)) / ONE
}

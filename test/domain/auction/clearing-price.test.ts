import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { clearingPrice, referenceTick } from '../../../domain/auction/clearing-price.ts'
import type { BatchEntry } from '../../../domain/auction/tranches.ts'
import type { RestingOrder } from '../../../domain/book/book.ts'
import type { Millis, Price, Steps, Ticks } from '../../../domain/units.ts'
import { e18, ticks } from '../../support/markets.ts'
import { resting, roundMarket } from '../support/resting.ts'

const band = { lo: ticks(95), hi: ticks(105) }
const range = Array.from({ length: 11 }, (_, i) => 95 + i)

type Side = RestingOrder['side']

/** An entry with a reducing and an opening tranche; 0 steps for none. */
function entry(
  side: Side,
  type: 'MARKET' | 'LIMIT',
  reducing: [number, number],
  opening: [number, number],
): BatchEntry {
  const order = resting({ side, type, remaining: (reducing[0] + opening[0]) as Steps })
  const limitOf = ([size, limit]: [number, number]) => (size > 0 ? ticks(limit) : null)
  return {
    bounded: {
      order,
      capacity: { size: 0 as Steps, reducingSide: null, bankruptcyLimit: ticks(0), mayOpen: true },
      limit: ticks(100),
      reducingLimit: limitOf(reducing),
      openingLimit: limitOf(opening),
      openable: opening[0] as Steps,
    },
    reducing: reducing[0] as Steps,
    opening: opening[0] as Steps,
  }
}

const anyEntry = (side: Side): fc.Arbitrary<BatchEntry> => {
  const tranche = fc.tuple(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 95, max: 105 }))
  return fc
    .tuple(fc.constantFrom('MARKET' as const, 'LIMIT' as const, 'LIMIT' as const), tranche, tranche)
    .filter(([, reducing, opening]) => reducing[0] + opening[0] > 0)
    .map(([type, reducing, opening]) => entry(side, type, reducing, opening))
}

const anyQuestion = fc.record({
  buys: fc.array(anyEntry('LONG'), { maxLength: 8 }),
  sells: fc.array(anyEntry('SHORT'), { maxLength: 8 }),
  band: fc.constant(band),
  reference: fc.integer({ min: 90, max: 110 }).map(ticks),
})

const limitsOf = ({ bounded, reducing, opening }: BatchEntry): [number, number][] => [
  ...(reducing > 0 ? [[reducing, bounded.reducingLimit as number] as [number, number]] : []),
  ...(opening > 0 ? [[opening, bounded.openingLimit as number] as [number, number]] : []),
]

const at = (entries: readonly BatchEntry[], isIn: (limit: number) => boolean): number =>
  entries.flatMap(limitsOf).reduce((sum, [steps, limit]) => sum + (isIn(limit) ? steps : 0), 0)

/**
 * Demand and supply at every tick of the band, reduced to the ticks that have the largest volume and then the
 * smallest surplus.
 */
function surviving({ buys, sells }: { buys: readonly BatchEntry[]; sells: readonly BatchEntry[] }) {
  const rows = range.map((tick) => {
    const demand = at(buys, (limit) => limit >= tick)
    const supply = at(sells, (limit) => limit <= tick)
    return { tick, demand, supply, volume: Math.min(demand, supply), surplus: Math.abs(demand - supply) }
  })
  const volume = Math.max(...rows.map((row) => row.volume))
  const largest = rows.filter((row) => row.volume === volume)
  const least = Math.min(...largest.map((row) => row.surplus))
  return { volume, largest, tied: largest.filter((row) => row.surplus === least) }
}

describe('clearingPrice', () => {
  it('law 3: when any batch clears, no tick of the band has a larger volume', () => {
    fc.assert(
      fc.property(anyQuestion, (question) => {
        const answer = clearingPrice(question)
        const { volume } = surviving(question)
        expect(answer === null ? 0 : Math.min(answer.demand, answer.supply)).to.equal(volume)
      }),
    )
  })

  it('law 4: when ticks tie in volume, it takes the smallest surplus, then pressure to an anchor, then the tick nearest to the reference', () => {
    fc.assert(
      fc.property(anyQuestion, (question) => {
        const answer = clearingPrice(question)
        if (answer === null) return
        const { largest, tied } = surviving(question)
        const row = tied.find(({ tick }) => tick === answer.price)
        expect(row, 'of the smallest surplus').to.not.equal(undefined)
        expect([answer.demand, answer.supply]).to.deep.equal([row?.demand, row?.supply])

        const all = [...question.buys, ...question.sells].filter(
          ({ bounded }) => bounded.order.type === 'LIMIT',
        )
        const anchors = all.flatMap(limitsOf).map(([, limit]) => limit)
        const anchored = tied.map(({ tick }) => tick).filter((tick) => anchors.includes(tick))
        const pushed = (sign: 1 | -1): boolean =>
          tied.length > 1 &&
          anchored.length > 0 &&
          tied.every(({ demand, supply }) => (demand - supply) * sign > 0)
        if (largest.length === 1) expect(answer.rule).to.equal('volume')
        else if (tied.length === 1) expect(answer.rule).to.equal('surplus')
        else if (pushed(1)) expect(answer).to.include({ rule: 'buy_pressure', price: Math.max(...anchored) })
        else if (pushed(-1))
          expect(answer).to.include({ rule: 'sell_pressure', price: Math.min(...anchored) })
        else {
          const nearest = tied
            .map(({ tick }) => tick)
            .sort((a, b) => Math.abs(a - question.reference) - Math.abs(b - question.reference))[0]
          expect(answer).to.include({ rule: 'reference', price: nearest })
        }
      }),
      { numRuns: 500 },
    )
  })

  it('when the smallest surplus lies between two limits, it finds it', () => {
    const question = {
      buys: [entry('LONG', 'LIMIT', [0, 0], [10, 100]), entry('LONG', 'LIMIT', [0, 0], [10, 103])],
      sells: [entry('SHORT', 'LIMIT', [0, 0], [10, 98]), entry('SHORT', 'LIMIT', [0, 0], [10, 102])],
      band,
      reference: ticks(99),
    }
    expect(clearingPrice(question)).to.include({ price: 101, rule: 'surplus' })
  })
})

describe('referenceTick', () => {
  const asOf = 100_000 as Millis
  const tickOf = (reference: [number, number] | null, oracle: string): Ticks =>
    referenceTick(roundMarket, {
      reference: reference === null ? null : { price: ticks(reference[0]), at: reference[1] as Millis },
      oracle: e18(oracle) as Price,
      asOf,
      band,
    })

  it('when the last clearing price is under 60 s old and in the band, it is that price', () => {
    expect(tickOf([97, 40_001], '100')).to.equal(97)
    expect(tickOf([97, 40_000], '100'), '60 s old').to.equal(100)
    expect(tickOf([106, 99_999], '100'), 'out of the band').to.equal(100)
    expect(tickOf(null, '100')).to.equal(100)
  })

  it('when there is no reference, it is the tick nearest to the oracle price, half rounded down', () => {
    expect(tickOf(null, '100.5')).to.equal(100)
    expect(tickOf(null, '100.500000000000000001')).to.equal(101)
  })
})

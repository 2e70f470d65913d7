import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { clearingPrice } from '../../../domain/auction/clearing-price.ts'
import type { BatchEntry } from '../../../domain/auction/tranches.ts'
import type { RestingOrder } from '../../../domain/book/book.ts'
import type { Steps } from '../../../domain/units.ts'
import { ticks } from '../../support/markets.ts'
import { resting } from '../support/resting.ts'

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
  oracle: fc.integer({ min: 90, max: 110 }).map(ticks),
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

  it('law 4: when ticks tie in volume, it takes the smallest surplus, then an end of the interval that limit orders carry, then the tick nearest to the oracle price', () => {
    fc.assert(
      fc.property(anyQuestion, (question) => {
        const answer = clearingPrice(question)
        if (answer === null) return
        const { volume, largest, tied } = surviving(question)
        const row = tied.find(({ tick }) => tick === answer.price)
        expect(row, 'of the smallest surplus').to.not.equal(undefined)
        expect([answer.demand, answer.supply]).to.deep.equal([row?.demand, row?.supply])

        const ofLimits = (entries: readonly BatchEntry[], isIn: (limit: number) => boolean): number =>
          at(
            entries.filter(({ bounded }) => bounded.order.type === 'LIMIT'),
            isIn,
          )
        const x = tied[0]?.tick as number
        const y = tied.at(-1)?.tick as number
        const highCounts = ofLimits(question.buys, (limit) => limit >= y) >= volume
        const lowCounts = ofLimits(question.sells, (limit) => limit <= x) >= volume
        const hasSurplus = (sign: 1 | -1): boolean =>
          tied.every(({ demand, supply }) => (demand - supply) * sign > 0)
        if (largest.length === 1) expect(answer.rule).to.equal('volume')
        else if (tied.length === 1) expect(answer.rule).to.equal('surplus')
        else if (hasSurplus(1) && (highCounts || lowCounts))
          expect(answer).to.include({ rule: 'buy_pressure', price: highCounts ? y : x })
        else if (hasSurplus(-1) && (highCounts || lowCounts))
          expect(answer).to.include({ rule: 'sell_pressure', price: lowCounts ? x : y })
        else if (highCounts && !lowCounts) expect(answer).to.include({ rule: 'limit', price: y })
        else if (lowCounts && !highCounts) expect(answer).to.include({ rule: 'limit', price: x })
        else {
          const nearest = tied
            .map(({ tick }) => tick)
            .sort((a, b) => Math.abs(a - question.oracle) - Math.abs(b - question.oracle))[0]
          expect(answer).to.include({ rule: 'oracle', price: nearest })
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
      oracle: ticks(99),
    }
    expect(clearingPrice(question)).to.include({ price: 101, rule: 'surplus' })
  })
})

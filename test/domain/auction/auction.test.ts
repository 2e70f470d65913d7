import { expect } from 'chai'
import { describe, it } from 'mocha'
import { type AuctionInput, clear } from '../../../domain/auction/auction.ts'
import type { Clearing } from '../../../domain/auction/clearing.ts'
import { Book, type RestingOrder } from '../../../domain/book/book.ts'
import { FLAT, type Position } from '../../../domain/positions/position.ts'
import { type Millis, ONE, type Seq, type Ticks, type UserId } from '../../../domain/units.ts'
import { price, ticks } from '../../support/markets.ts'
import { NO_FUNDING, oracle100, orders, positionAt, roundMarket } from '../support/resting.ts'

type Named = ReturnType<typeof orders>

interface Story {
  readonly book: string
  readonly reference?: number
  readonly held?: Record<number, Position>
  readonly input?: Partial<AuctionInput>
}

function run({ book, reference, held = {}, input }: Story): { clearing: Clearing; named: Named } {
  const named = orders(book)
  const clearing = clear({
    spec: roundMarket,
    book: Book.of(named.all),
    positions: (account) => held[account] ?? FLAT,
    fundingIndex: NO_FUNDING,
    oracle: oracle100,
    reference: reference === undefined ? null : { price: ticks(reference), at: 1 as Millis },
    asOf: 1 as Millis,
    ...input,
  })
  return { clearing, named }
}

/** The clearing in words: `100 x15: A5 B10 C15; A-C 5 (A), B-C 10 (B)`. */
function told({ clearing, named }: { clearing: Clearing; named: Named }): string {
  const nameOf = (seq: Seq): string =>
    Object.keys(named).find((name) => (named[name] as RestingOrder).seq === seq) ?? '?'
  const fills = clearing.fills.map(({ seq, fill }) => `${nameOf(seq)}${fill}`).sort()
  const pairs = clearing.pairs.map(
    ({ buySeq, sellSeq, steps, makerSeq }) =>
      `${nameOf(buySeq)}-${nameOf(sellSeq)} ${steps} (${nameOf(makerSeq)})`,
  )
  return `${clearing.price} x${clearing.volume}: ${fills.join(' ')}; ${pairs.join(', ')}`
}

/** The golden vectors of the auction research, B2. None of them differs under the design: there is one ration, over all orders. */
const golden: readonly (Story & { readonly name: string; readonly says: string })[] = [
  {
    name: 'G1: the long side shares pro rata over all its orders, better limits included',
    book: 'A buy 101 x10\nB buy 100 x20\nC sell 100 x15',
    reference: 100,
    says: '100 x15: A5 B10 C15; A-C 5 (A), B-C 10 (B)',
  },
  {
    name: 'G2: the price lies between two limits, where the surplus is smallest',
    book: 'A buy 100 x10\nB buy 103 x10\nC sell 98 x10\nD sell 102 x10',
    reference: 100,
    says: '101 x10: B10 C10; B-C 10 (B)',
  },
  {
    name: 'G3: buy pressure stops at the last anchor, not at the edge of the band',
    book: 'A buy market x100\nB sell 100 x10',
    reference: 97,
    says: '100 x10: A10 B10; A-B 10 (B)',
  },
  {
    name: 'G4: market orders alone trade at the reference',
    book: 'A buy market x10\nB sell market x6',
    reference: 97,
    says: '97 x6: A6 B6; A-B 6 (A)',
  },
  {
    name: 'G5: without a surplus the reference decides, within the interval',
    book: 'A buy 101 x10\nB sell 99 x10',
    reference: 103,
    says: '101 x10: A10 B10; A-B 10 (A)',
  },
  {
    name: 'G6: equal remainders, the earlier get the left-over steps',
    book: 'A buy 100 x3\nB buy 100 x3\nC buy 100 x3\nD sell 100 x5',
    reference: 100,
    says: '100 x5: A2 B2 C1 D5; A-D 2 (A), B-D 2 (B), C-D 1 (C)',
  },
  {
    name: 'G7: market orders are paired with limit orders first',
    book: 'A sell 99 x4\nB buy market x6\nC sell market x3\nD buy 99 x1',
    reference: 100,
    says: '99 x7: A4 B6 C3 D1; B-A 4 (A), B-C 2 (B), D-C 1 (D)',
  },
  {
    name: 'G8: a buy beyond the band takes part at its edge, a sell beyond it waits',
    book: 'A buy 110 x5\nB sell 104 x5\nC sell 106 x5',
    reference: 100,
    says: '104 x5: A5 B5; A-B 5 (A)',
  },
  {
    // Quantities are counted in steps: 35, 15 and 30 by steps of 10 are three and a half, one and a half and three of them. An
    // order is a whole number of steps by the design, so the case is told with 7, 3 and 3 steps, where a step is left over too.
    name: 'G9: the largest remainder gets the step left over (retold in whole steps)',
    book: 'A buy 100 x7\nB buy 100 x3\nC sell 100 x3',
    reference: 100,
    says: '100 x3: A2 B1 C3; A-C 2 (A), B-C 1 (B)',
  },
]

describe('clear: golden cases', () => {
  for (const { name, says, ...story } of golden) {
    it(name, () => expect(told(run(story))).to.equal(says))
  }
})

const long10 = positionAt(roundMarket, { size: 10, entry: 100, margin: 20n * ONE })
const short10 = positionAt(roundMarket, { size: -10, entry: 100, margin: 20n * ONE })

describe('clear: positions', () => {
  it('gives the position to a nearer order before a distant take-profit, though that is reduce-only and earlier', () => {
    const book = `
      A sell 104 x10 reduce-only by 1
      B sell 100 x10 reserves 0 by 1
      C buy 101 x10 by 2`
    expect(told(run({ book, held: { 1: long10 } }))).to.equal('100 x10: B10 C10; C-B 10 (B)')
  })

  it('gives it to a forced order first, then to market orders, at one price to reduce-only ones', () => {
    const book = `
      A sell 100 x4 reserves 0 by 1
      B sell 100 x4 reduce-only by 1
      C sell market x4 reserves 0 by 1
      D sell market x3 forced by 1
      E buy 100 x20 by 2`
    expect(told(run({ book, held: { 1: long10 } }))).to.match(/x10: B3 C4 D3 E10/)
  })

  it('lets an order flip a position: what closes it, and what it reserved for', () => {
    const book = 'A sell 100 x25 reserves 8 by 1\nB buy 100 x30 by 2'
    const { clearing } = run({ book, held: { 1: long10 } })
    expect(clearing.fills[0]).to.include({ fill: 18, reducing: 10, opening: 8, remaining: 7 })
  })

  it('lets a reduce-only order close no more than there is', () => {
    const book = 'A buy 100 x25 reduce-only by 1\nB sell 100 x30 by 2'
    const { clearing } = run({ book, held: { 1: short10 } })
    expect(clearing.fills[0]).to.include({ fill: 10, reducing: 10, opening: 0, remaining: 15 })
    expect(clearing.cancels).to.deep.equal([])
  })

  it('closes a long no lower than its bankruptcy price, whatever the order says', () => {
    const underWater = positionAt(roundMarket, { size: 10, entry: 100, margin: 3n * ONE })
    const book = 'A sell market x10 forced by 1\nB buy 96 x10 by 2'
    expect(run({ book, held: { 1: underWater } }).clearing.outcome).to.equal('no_cross')
    const better = 'A sell market x10 forced by 1\nB buy 97 x10 by 2'
    expect(told(run({ book: better, held: { 1: underWater } }))).to.equal('97 x10: A10 B10; B-A 10 (B)')
  })

  it('opens nothing while the ratio is below the requirement, and still closes', () => {
    const thin = positionAt(roundMarket, { size: 10, entry: 100, margin: 4n * ONE })
    const grow = 'A buy 100 x5 by 1\nB sell 100 x5 by 2'
    expect(run({ book: grow, held: { 1: thin } }).clearing.outcome).to.equal('no_cross')
    const flip = 'A sell 100 x15 by 1\nB buy 100 x15 by 2'
    expect(run({ book: flip, held: { 1: thin } }).clearing.volume).to.equal(10)
  })
})

describe('clear: margin at the price', () => {
  it('lets a buy with leverage reach no further than its margin does at the oracle price', () => {
    const book = 'A buy 105 x5 20x by 1\nB sell 101 x5 by 2'
    expect(run({ book }).clearing.outcome, '20x: up to 100.5').to.equal('no_cross')
    expect(run({ book: book.replace('20x', '19x') }).clearing.price, '19x: up to 100.8').to.equal(null)
    expect(run({ book: book.replace('20x', '15x') }).clearing.price, '15x: up to 102.3').to.equal(101)
  })

  it('lets a market sell wait while the oracle price is above what it reserved at, and keeps it', () => {
    const named = orders('A sell market x5 by 1\nB buy 101 x5 by 2')
    const waiting = { ...(named.A as RestingOrder), reservedPrice: 99 as Ticks }
    const { clearing } = run({
      book: 'B buy 101 x5',
      input: { book: Book.of([waiting, named.B as RestingOrder]) },
    })
    expect(clearing.outcome).to.equal('no_cross')
    expect(clearing.cancels).to.deep.equal([])
  })

  it('caps a buy at the price it reserved at', () => {
    const named = orders('A buy market x5 by 1\nB sell 103 x5 by 2')
    const capped = { ...(named.A as RestingOrder), reservedPrice: 102 as Ticks }
    const { clearing } = run({
      book: 'B sell 103 x5',
      input: { book: Book.of([capped, named.B as RestingOrder]) },
    })
    expect(clearing.outcome).to.equal('no_cross')
    expect(clearing.cancels).to.deep.equal([{ seq: 1, reason: 'MARKET_REMAINDER' }])
  })
})

describe('clear: what ends', () => {
  it('cancels what a market order has left, and keeps what a limit order has', () => {
    const { clearing } = run({ book: 'A buy market x10\nB sell 100 x4\nC buy 100 x1' })
    expect(clearing.cancels).to.deep.equal([{ seq: 1, reason: 'MARKET_REMAINDER' }])
    expect(clearing.fills.map(({ seq, remaining }) => [seq, remaining])).to.deep.include([2, 0])
  })

  it('cancels a market order that met nothing', () => {
    const { clearing } = run({ book: 'A buy market x10' })
    expect(clearing).to.include({ outcome: 'no_cross', price: null, volume: 0 })
    expect(clearing.cancels).to.deep.equal([{ seq: 1, reason: 'MARKET_REMAINDER' }])
  })

  it('says why a market order could not take part', () => {
    const { clearing } = run({ book: 'A buy market x10 reduce-only\nB sell market x4 reserves 0' })
    expect(clearing.cancels).to.deep.equal([
      { seq: 1, reason: 'REDUCE_ONLY_NO_POSITION' },
      { seq: 2, reason: 'INSUFFICIENT_MARGIN' },
    ])
  })

  it('cancels the later of two orders of one account that cross, and trades the rest', () => {
    const book = `
      A buy 101 x10 by 1
      B sell 100 x10 by 1
      C sell 101 x4 by 2`
    const { clearing, named } = run({ book })
    expect(clearing.cancels).to.deep.equal([{ seq: 2, reason: 'SELF_TRADE' }])
    expect(told({ clearing, named })).to.equal('101 x4: A4 C4; A-C 4 (A)')
  })

  it('stops a market order one tick short of its own limit', () => {
    const book = `
      A sell 102 x10 by 1
      B buy market x10 by 1
      C sell 103 x10 by 2`
    expect(run({ book }).clearing.outcome).to.equal('no_cross')
    expect(told(run({ book: book.replace('103', '101') }))).to.equal('101 x10: B10 C10; B-C 10 (C)')
  })

  it('leaves excluded accounts and orders as they are', () => {
    const book = 'A buy 101 x10 by 1\nB sell 100 x10 by 2\nC sell market x5 by 3'
    const excluded = { accounts: new Set([2 as UserId]), orders: new Set([3 as Seq]) }
    const { clearing } = run({ book, input: { excluded } })
    expect(clearing.outcome).to.equal('no_cross')
    expect(clearing.cancels).to.deep.equal([])
  })
})

describe('clear: the band', () => {
  it('clears at the edge when all the pressure is beyond it', () => {
    expect(told(run({ book: 'A buy 120 x5\nB sell 90 x9', reference: 100 }))).to.equal(
      '95 x5: A5 B5; A-B 5 (A)',
    )
  })

  it('reports the band and the side that was rationed', () => {
    const { clearing } = run({ book: 'A buy 101 x10\nB buy 100 x20\nC sell 100 x15' })
    expect(clearing).to.deep.include({ lo: 95, hi: 105, demand: 30, supply: 15 })
    expect(clearing.proration).to.deep.equal({ side: 'LONG', volume: 15, eligible: 30 })
    expect(clearing.inputs.oracle).to.equal(price('100'))
  })
})

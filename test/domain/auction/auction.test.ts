import { expect } from 'chai'
import { describe, it } from 'mocha'
import { type AuctionInput, clear } from '../../../domain/auction/auction.ts'
import type { Clearing } from '../../../domain/auction/clearing.ts'
import { Book, type RestingOrder } from '../../../domain/book/book.ts'
import { DEFAULT_PRICE_PROTECTION } from '../../../domain/market/price-protection.ts'
import { FLAT, type Position } from '../../../domain/positions/position.ts'
import { type Millis, ONE, type Seq, type Ticks, type UserId } from '../../../domain/units.ts'
import { price } from '../../support/markets.ts'
import { NO_FUNDING, oracle100, orders, positionAt, roundMarket } from '../support/resting.ts'

type Named = ReturnType<typeof orders>

interface AuctionCase {
  readonly book: string
  readonly held?: Record<number, Position>
  readonly input?: Partial<AuctionInput>
}

function run({ book, held = {}, input }: AuctionCase): { clearing: Clearing; named: Named } {
  const named = orders(book)
  const clearing = clear({
    spec: roundMarket,
    book: Book.of(named.all),
    positions: (account) => held[account] ?? FLAT,
    fundingIndex: NO_FUNDING,
    oracle: oracle100,
    standingSeq: Number.MAX_SAFE_INTEGER as Seq,
    priceProtection: DEFAULT_PRICE_PROTECTION.perpetual,
    asOf: 1 as Millis,
    ...input,
  })
  return { clearing, named }
}

/** The clearing as text: `100 x15: A5 B10 C15; A-C 5 (A), B-C 10 (B)`. */
function summaryOf({ clearing, named }: { clearing: Clearing; named: Named }): string {
  const nameOf = (seq: Seq): string =>
    Object.keys(named).find((name) => (named[name] as RestingOrder).seq === seq) ?? '?'
  const fills = clearing.fills.map(({ seq, fill }) => `${nameOf(seq)}${fill}`).sort()
  const pairs = clearing.pairs.map(
    ({ buySeq, sellSeq, steps, makerSeq }) =>
      `${nameOf(buySeq)}-${nameOf(sellSeq)} ${steps} (${nameOf(makerSeq)})`,
  )
  return `${clearing.price} x${clearing.volume}: ${fills.join(' ')}; ${pairs.join(', ')}`
}

/** The golden vectors of the auction research, B2. All of them hold under the design, which prorates over all orders. */
const golden: readonly (AuctionCase & { readonly name: string; readonly expected: string })[] = [
  {
    name: 'when the long side is larger, it fills pro rata over all its orders, better limits included (G1)',
    book: 'A buy 101 x10\nB buy 100 x20\nC sell 100 x15',
    expected: '100 x15: A5 B10 C15; A-C 5 (A), B-C 10 (B)',
  },
  {
    name: 'when the surplus is smallest between two limits, the price lies between them (G2)',
    book: 'A buy 100 x10\nB buy 103 x10\nC sell 98 x10\nD sell 102 x10',
    expected: '101 x10: B10 C10; B-C 10 (B)',
  },
  {
    name: 'when there is buy pressure, the price stops at the last limit order that is needed, not at the edge of the band (G3)',
    book: 'A buy market x100\nB sell 100 x10',
    expected: '100 x10: A10 B10; A-B 10 (B)',
  },
  {
    name: 'when only market orders meet and buys exceed sells, they trade at the oracle price (G4)',
    book: 'A buy market x10\nB sell market x6',
    expected: '100 x6: A6 B6; A-B 6 (A)',
  },
  {
    name: 'when two limits of equal size meet, they trade at the point between them nearest to the oracle price (G5)',
    book: 'A buy 101 x10\nB sell 99 x10',
    expected: '100 x10: A10 B10; A-B 10 (A)',
  },
  {
    name: 'when remainders are equal, the earlier orders get the remaining steps (G6)',
    book: 'A buy 100 x3\nB buy 100 x3\nC buy 100 x3\nD sell 100 x5',
    expected: '100 x5: A2 B2 C1 D5; A-D 2 (A), B-D 2 (B), C-D 1 (C)',
  },
  {
    name: 'when market and limit orders fill, market orders are paired with limit orders first (G7)',
    book: 'A sell 99 x4\nB buy market x6\nC sell market x3\nD buy 99 x1',
    expected: '99 x7: A4 B6 C3 D1; B-A 4 (A), B-C 2 (B), D-C 1 (D)',
  },
  {
    name: 'when limits lie beyond the band, a buy takes part at its edge and a sell waits (G8)',
    book: 'A buy 110 x5\nB sell 104 x5\nC sell 106 x5',
    expected: '104 x5: A5 B5; A-B 5 (A)',
  },
  {
    // The research uses quantities 35, 15 and 30 with a step of 10. An order is a whole number of steps by the design, so this
    // case uses 7, 3 and 3 steps, where one step remains too.
    name: 'when a step remains, the largest remainder gets it (G9, in whole steps)',
    book: 'A buy 100 x7\nB buy 100 x3\nC sell 100 x3',
    expected: '100 x3: A2 B1 C3; A-C 2 (A), B-C 1 (B)',
  },
]

describe('clear: golden cases', () => {
  for (const { name, expected, ...auctionCase } of golden) {
    it(name, () => expect(summaryOf(run(auctionCase))).to.equal(expected))
  }
})

const long10 = positionAt(roundMarket, { size: 10, entry: 100, margin: 20n * ONE })
const short10 = positionAt(roundMarket, { size: -10, entry: 100, margin: 20n * ONE })

describe('clear: positions', () => {
  it('when a nearer order and a distant reduce-only take-profit compete for the position, the nearer order gets it', () => {
    const book = `
      A sell 104 x10 reduce-only by 1
      B sell 100 x10 reserves 0 by 1
      C buy 101 x10 by 2`
    expect(summaryOf(run({ book, held: { 1: long10 } }))).to.equal('100 x10: B10 C10; C-B 10 (B)')
  })

  it('when orders compete for the position, forced orders come first, then market orders, then reduce-only orders at one price', () => {
    const book = `
      A sell 100 x4 reserves 0 by 1
      B sell 100 x4 reduce-only by 1
      C sell market x4 reserves 0 by 1
      D sell market x3 forced by 1
      E buy 100 x20 by 2`
    expect(summaryOf(run({ book, held: { 1: long10 } }))).to.match(/x10: B3 C4 D3 E10/)
  })

  it('when an order flips a position, it trades the closing steps and the opening steps that it reserved for', () => {
    const book = 'A sell 100 x25 reserves 8 by 1\nB buy 100 x30 by 2'
    const { clearing } = run({ book, held: { 1: long10 } })
    expect(clearing.fills[0]).to.include({ fill: 18, reducing: 10, opening: 8, remaining: 7 })
  })

  it('when a reduce-only order exceeds the position, it closes only the position', () => {
    const book = 'A buy 100 x25 reduce-only by 1\nB sell 100 x30 by 2'
    const { clearing } = run({ book, held: { 1: short10 } })
    expect(clearing.fills[0]).to.include({ fill: 10, reducing: 10, opening: 0, remaining: 15 })
    expect(clearing.cancels).to.deep.equal([])
  })

  it('when an order would close a long below its bankruptcy price, it stops at the bankruptcy price', () => {
    const underWater = positionAt(roundMarket, { size: 10, entry: 100, margin: 3n * ONE })
    const book = 'A sell market x10 forced by 1\nB buy 96 x10 by 2'
    expect(run({ book, held: { 1: underWater } }).clearing.outcome).to.equal('no_cross')
    const better = 'A sell market x10 forced by 1\nB buy 97 x10 by 2'
    expect(summaryOf(run({ book: better, held: { 1: underWater } }))).to.equal('97 x10: A10 B10; B-A 10 (B)')
  })

  it('when the ratio is below IMR, orders open nothing and still close', () => {
    const thin = positionAt(roundMarket, { size: 10, entry: 100, margin: 4n * ONE })
    const grow = 'A buy 100 x5 by 1\nB sell 100 x5 by 2'
    expect(run({ book: grow, held: { 1: thin } }).clearing.outcome).to.equal('no_cross')
    const flip = 'A sell 100 x15 by 1\nB buy 100 x15 by 2'
    expect(run({ book: flip, held: { 1: thin } }).clearing.volume).to.equal(10)
  })
})

describe('clear: margin at the price', () => {
  it('when a buy has leverage, it reaches only the price at which its margin meets IMR', () => {
    const book = 'A buy 105 x5 20x by 1\nB sell 101 x5 by 2'
    expect(run({ book }).clearing.outcome, '20x: up to 100.5').to.equal('no_cross')
    expect(run({ book: book.replace('20x', '19x') }).clearing.price, '19x: up to 100.8').to.equal(null)
    expect(run({ book: book.replace('20x', '15x') }).clearing.price, '15x: up to 102.3').to.equal(101)
  })

  it('when the oracle price is above the reserved price of a market sell, the order waits in the book', () => {
    const named = orders('A sell market x5 by 1\nB buy 101 x5 by 2')
    const waiting = { ...(named.A as RestingOrder), reservedPrice: 99 as Ticks }
    const { clearing } = run({
      book: 'B buy 101 x5',
      input: { book: Book.of([waiting, named.B as RestingOrder]) },
    })
    expect(clearing.outcome).to.equal('no_cross')
    expect(clearing.cancels).to.deep.equal([])
  })

  it("when the price would exceed a buy's reserved price, the buy is capped at it", () => {
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

describe('clear: orders that end', () => {
  it('when orders fill in part, the remainder of a market order is cancelled and that of a limit order stays', () => {
    const { clearing } = run({ book: 'A buy market x10\nB sell 100 x4\nC buy 100 x1' })
    expect(clearing.cancels).to.deep.equal([{ seq: 1, reason: 'MARKET_REMAINDER' }])
    expect(clearing.fills.map(({ seq, remaining }) => [seq, remaining])).to.deep.include([2, 0])
  })

  it('when a market order meets no order, it is cancelled', () => {
    const { clearing } = run({ book: 'A buy market x10' })
    expect(clearing).to.include({ outcome: 'no_cross', price: null, volume: 0 })
    expect(clearing.cancels).to.deep.equal([{ seq: 1, reason: 'MARKET_REMAINDER' }])
  })

  it('when a market order cannot take part, it is cancelled with the reason', () => {
    const { clearing } = run({ book: 'A buy market x10 reduce-only\nB sell market x4 reserves 0' })
    expect(clearing.cancels).to.deep.equal([
      { seq: 1, reason: 'REDUCE_ONLY_NO_POSITION' },
      { seq: 2, reason: 'INSUFFICIENT_MARGIN' },
    ])
  })

  it('when two orders of one account cross, the later is cancelled and the rest trades', () => {
    const book = `
      A buy 101 x10 by 1
      B sell 100 x10 by 1
      C sell 101 x4 by 2`
    const { clearing, named } = run({ book })
    expect(clearing.cancels).to.deep.equal([{ seq: 2, reason: 'SELF_TRADE' }])
    expect(summaryOf({ clearing, named })).to.equal('101 x4: A4 C4; A-C 4 (A)')
  })

  it('when an account has a limit order on the other side, its market order stops one tick short of it', () => {
    const book = `
      A sell 102 x10 by 1
      B buy market x10 by 1
      C sell 103 x10 by 2`
    expect(run({ book }).clearing.outcome).to.equal('no_cross')
    expect(summaryOf(run({ book: book.replace('103', '101') }))).to.equal('101 x10: B10 C10; B-C 10 (C)')
  })

  it('when accounts or orders are excluded, they stay unchanged', () => {
    const book = 'A buy 101 x10 by 1\nB sell 100 x10 by 2\nC sell market x5 by 3'
    const excluded = { accounts: new Set([2 as UserId]), orders: new Set([3 as Seq]) }
    const { clearing } = run({ book, input: { excluded } })
    expect(clearing.outcome).to.equal('no_cross')
    expect(clearing.cancels).to.deep.equal([])
  })
})

describe('clear: the band', () => {
  it('when all pressure lies beyond the band, it clears at the edge', () => {
    expect(summaryOf(run({ book: 'A buy 120 x5\nB sell 90 x9' }))).to.equal('95 x5: A5 B5; A-B 5 (A)')
  })

  it('when a side fills in part, it reports the band and the prorated side', () => {
    const { clearing } = run({ book: 'A buy 101 x10\nB buy 100 x20\nC sell 100 x15' })
    expect(clearing).to.deep.include({ lo: 95, hi: 105, demand: 30, supply: 15 })
    expect(clearing.proration).to.deep.equal({ side: 'LONG', volume: 15, eligible: 30 })
    expect(clearing.inputs.oracle).to.equal(price('100'))
  })
})

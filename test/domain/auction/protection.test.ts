/** Golden cases of the protection price, computed by hand. Prices are ticks: 857 is 857 ticks of 1. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { type AuctionInput, clear } from '../../../domain/auction/auction.ts'
import type { Clearing, Protection } from '../../../domain/auction/clearing.ts'
import { Book, type RestingOrder } from '../../../domain/book/book.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { DEFAULT_PRICE_PROTECTION } from '../../../domain/market/price-protection.ts'
import { FLAT, type Position } from '../../../domain/positions/position.ts'
import { type Millis, ONE, type Price, type Rate, type Seq, type Steps } from '../../../domain/units.ts'
import { binary, future, price, rate, ticks } from '../../support/markets.ts'
import { NO_FUNDING, orders, positionAt, roundMarket } from '../support/resting.ts'

/** A numeric future with tick 1, step 0.01, band 20 %, minimum size one step, protection 2 %. */
const thinMarket: MarketSpec = {
  ...future,
  tick: ONE as Price,
  step: price('0.01') as bigint as MarketSpec['step'],
  minQuantity: 1 as Steps,
  mtbLong: rate('0.2'),
  mtbShort: rate('0.2'),
}
/** Tick 1, band 5 %, minimum size one step, protection 1 %: O = 100 makes 95 to 105. */
const oneStepMarket: MarketSpec = { ...roundMarket, minQuantity: 1 as Steps }

interface ProtectionCase {
  readonly book: string
  readonly spec?: MarketSpec
  readonly oracle?: string
  /** Orders up to this line stood in the previous auction; all if absent. */
  readonly standing?: number
  readonly held?: Record<number, Position>
  readonly changes?: Partial<RestingOrder>
  readonly width?: Rate
}

function run({
  book,
  spec = thinMarket,
  oracle = '857',
  standing,
  held = {},
  changes,
  width,
}: ProtectionCase) {
  const { all } = orders(book)
  const resting = all.map((order) => (order.type === 'MARKET' ? { ...order, ...changes } : order))
  return clear({
    ...{ spec, book: Book.of(resting), positions: (account) => held[account] ?? FLAT },
    ...{ fundingIndex: NO_FUNDING, oracle: price(oracle), asOf: 1 as Millis },
    standingSeq: (standing ?? all.length) as Seq,
    priceProtection: width ?? DEFAULT_PRICE_PROTECTION[spec.kind],
  } satisfies AuctionInput)
}

const protectionOf = (one: ProtectionCase): Protection => run(one).protections[0] as Protection

const fillsOf = ({ price: cleared, fills, cancels }: Clearing) => ({
  price: cleared,
  fills: fills.map(({ seq, fill }) => [seq, fill]),
  cancels: cancels.map(({ seq, reason }) => [seq, reason]),
})

describe('clear: the reported manipulations', () => {
  it('when an order of one step far above joins a market buy on a thin ask, the buy fills at the ask', () => {
    const book = 'A sell 857 x24\nB buy market x100\nC buy 1007 x1'
    const clearing = run({ book, standing: 1 })
    expect(clearing).to.include({ price: 857, rule: 'buy_pressure' })
    expect(clearing.fills.map(({ seq }) => seq)).to.include(2)
    expect(protectionOf({ book, standing: 1 })).to.include({ best: 857, level: 857, price: 874 })
  })

  it('when an order of one step far below joins a market sell on a thin bid, the sell fills at the bid', () => {
    const book = 'A buy 849 x24\nB sell market x100\nC sell 700 x1'
    const clearing = run({ book, oracle: '857', standing: 1 })
    expect(clearing).to.include({ price: 849, rule: 'sell_pressure' })
    expect(protectionOf({ book, standing: 1 })).to.include({ best: 849, level: 849, price: 833 })
  })

  it('when a far ask of one step stands behind the ask, a market buy does not fill at it', () => {
    const book = 'A sell 857 x24\nB sell 1020 x1\nC buy market x100'
    expect(fillsOf(run({ book }))).to.deep.equal({
      price: 857,
      fills: [
        [1, 24],
        [3, 24],
      ],
      cancels: [[3, 'PRICE_PROTECTION']],
    })
  })
})

describe('clear: competition among limit orders', () => {
  const hundred = { spec: { ...oneStepMarket, mtbLong: rate('0.2'), mtbShort: rate('0.2') }, oracle: '105' }

  it('when five bids of 110 compete for one stale ask of 101, it clears at 110', () => {
    const bids = ['B', 'C', 'D', 'E', 'F'].map((name) => `${name} buy 110 x10`).join('\n')
    expect(run({ ...hundred, book: `A sell 101 x10\n${bids}` })).to.include({ price: 110, volume: 10 })
  })

  it('when two asks of 101 and 102 compete for one bid of 101, it clears at 101', () => {
    const book = 'A sell 101 x10\nB sell 102 x10\nC buy 101 x10'
    expect(run({ ...hundred, book })).to.include({ price: 101, volume: 10 })
  })
})

describe('protectionsOf', () => {
  const at100 = { spec: oneStepMarket, oracle: '100' }

  it('when no order stands, the reference is the oracle price', () => {
    const book = 'A buy market x10\nB sell 100 x10'
    expect(protectionOf({ ...at100, book, standing: 0 })).to.deep.equal({
      ...{ seq: 1, best: null, level: null, reference: price('100'), price: 101 },
    })
  })

  it('when the standing quotes lack one step of five minimum orders, the reference is the oracle price', () => {
    const book = 'A sell 103 x4\nB buy market x10'
    expect(protectionOf({ ...at100, book })).to.include({ level: null, price: 101 })
    expect(protectionOf({ ...at100, book: book.replace('x4', 'x5') })).to.include({ level: 103, price: 104 })
  })

  it('when the level lies far behind the best ask, the reference stops one width beyond the best ask', () => {
    const book = 'A sell 100 x1\nB sell 105 x9\nC buy market x10'
    expect(protectionOf({ ...at100, book })).to.deep.include({
      ...{ best: 100, level: 105, reference: price('101'), price: 102 },
    })
  })

  it('when the best ask lies below the oracle price, the reference may still reach one width beyond it', () => {
    const book = 'A sell 96 x1\nB sell 105 x9\nC buy market x10'
    expect(protectionOf({ ...at100, book })).to.include({ best: 96, reference: price('101'), price: 102 })
  })

  it("when the account's own quotes stand in front, they do not count", () => {
    const book = 'A sell 99 x9 by 7\nB sell 103 x5\nC buy market x10 by 7'
    expect(protectionOf({ ...at100, book })).to.include({ best: 103, level: 103 })
  })

  it('when a reduce-only order exceeds its position, only the position counts', () => {
    const book = 'A sell 99 x9 reduce-only\nB sell 103 x5\nC buy market x10'
    const held = { 1: positionAt(oneStepMarket, { size: 2, entry: 100, margin: 20n * ONE }) }
    expect(protectionOf({ ...at100, book, held })).to.include({ best: 99, level: 103 })
    expect(protectionOf({ ...at100, book })).to.include({ best: 103, level: 103 })
  })

  it('when the order is triggered, the width is three times as large', () => {
    const book = 'A buy market x10 triggered'
    expect(protectionOf({ ...at100, book })).to.include({ price: 103 })
  })

  it('when batches leave a forced order unfilled, each widens it by three widths, up to the band', () => {
    const held = { 1: positionAt(oneStepMarket, { size: -10, entry: 100, margin: 20n * ONE }) }
    const prices = [0, 1, 2].map((widenings) => {
      const book = 'A buy market x10 forced by 1'
      return protectionOf({ ...at100, book, held, changes: { widenings }, width: rate('0.005') }).price
    })
    expect(prices).to.deep.equal([101, 103, 104])
  })

  it('when another account quotes far from the oracle price, the protection of a forced order stays at the oracle price', () => {
    const wideBand = { ...oneStepMarket, mtbLong: rate('0.2'), mtbShort: rate('0.2') }
    const short = { 1: positionAt(wideBand, { size: -10, entry: 100, margin: 50n * ONE }) }
    const long = { 1: positionAt(wideBand, { size: 10, entry: 100, margin: 50n * ONE }) }
    const of = (book: string, held: Record<number, Position>, widenings = 0) =>
      protectionOf({ spec: wideBand, oracle: '100', book, held, changes: { widenings } })
    const farBid = 'A sell market x10 forced by 1\nB buy 85 x5'
    expect(of(farBid, long)).to.deep.include({ best: 85, level: 85, reference: price('100'), price: 97 })
    expect(of(farBid, long, 1)).to.include({ price: 94 })
    expect(of('A buy market x10 forced by 1\nB sell 115 x5', short)).to.include({ price: 103 })
    const better = of('A sell market x10 forced by 1\nB buy 104 x5', long)
    expect(better, 'a better quote counts').to.deep.include({ reference: price('104'), price: 101 })
  })

  it('when the reserved price lies before the protection, it is the protection', () => {
    const book = 'A buy market x10'
    expect(protectionOf({ ...at100, book, changes: { reservedPrice: ticks(98) } })).to.include({ price: 98 })
  })

  it('when the market is binary, the width is a distance, at most half of the way to 0 or 1', () => {
    const wideBand = { mtbLong: rate('0.9'), mtbShort: rate('0.9') }
    const cents: MarketSpec = { ...binary, ...wideBand, tick: rate('0.01') as bigint as Price }
    const of = (oracle: string, book: string, reservedPrice: number) =>
      protectionOf({ spec: cents, oracle, book, changes: { reservedPrice: ticks(reservedPrice) } }).price
    expect(of('0.5', 'A buy market x10', 99)).to.equal(53)
    expect(of('0.5', 'A buy market x10 triggered', 99)).to.equal(59)
    expect(of('0.5', 'A sell market x10', 1)).to.equal(47)
    expect(of('0.96', 'A buy market x10', 99), 'half of the way to 1').to.equal(98)
    expect(of('0.04', 'A sell market x10', 1), 'half of the way to 0').to.equal(2)
  })
})

describe('clear: remainders', () => {
  const at100 = { spec: oneStepMarket, oracle: '100' }
  const reasonOf = (book: string, input: Partial<ProtectionCase> = {}) =>
    run({ ...at100, ...input, book }).cancels.map(({ seq, reason }) => [seq, reason])

  it('when a quote lies beyond the protection, the remainder ends as PRICE_PROTECTION', () => {
    expect(reasonOf('A buy market x10\nB sell 102 x9', { standing: 0 })).to.deep.equal([
      [1, 'PRICE_PROTECTION'],
    ])
  })

  it('when no quote lies beyond the protection, the remainder ends as MARKET_REMAINDER', () => {
    expect(reasonOf('A buy market x10\nB sell 101 x9', { standing: 0 })).to.deep.equal([
      [1, 'MARKET_REMAINDER'],
    ])
  })

  it('when only a reduce-only order without a position lies beyond, it ends as MARKET_REMAINDER', () => {
    expect(reasonOf('A buy market x10\nB sell 102 x9 reduce-only', { standing: 0 })).to.deep.equal([
      [1, 'MARKET_REMAINDER'],
    ])
  })

  it('when the margin stops the order before the next quote, it ends as MARKET_REMAINDER', () => {
    expect(reasonOf('A buy market x10 15x\nB sell 103 x9', { standing: 0 })).to.deep.equal([
      [1, 'MARKET_REMAINDER'],
    ])
  })

  it("when the account's own limit lies before the next quote, it ends as MARKET_REMAINDER", () => {
    const book = 'A buy market x10 by 7\nB sell 102 x1 by 7\nC sell 103 x9'
    expect(reasonOf(book, { standing: 0 })).to.deep.equal([[1, 'MARKET_REMAINDER']])
  })

  it('when the order is rationed beside limit orders and its protection left it room, it ends as MARKET_REMAINDER', () => {
    // At 101 the limit buys drop out, so the price that fills the market order alone matches no more.
    const book = 'A buy market x8\nB buy 100 x20\nC sell 100 x10\nD sell 101 x2\nE sell 104 x9'
    expect(reasonOf(book, { standing: 0 })).to.deep.equal([[1, 'MARKET_REMAINDER']])
  })

  it('when the order is rationed beside other market orders and quotes lie beyond, all end as PRICE_PROTECTION', () => {
    const book = 'A buy market x10\nB buy market x10\nC sell 100 x10\nD sell 104 x9'
    expect(reasonOf(book, { standing: 0 })).to.deep.equal([
      [1, 'PRICE_PROTECTION'],
      [2, 'PRICE_PROTECTION'],
    ])
  })

  it('when bids beyond the protection take the asks, it ends as PRICE_PROTECTION', () => {
    const book = 'A buy market x10\nB sell 99 x5\nC buy 104 x20'
    expect(reasonOf(book, { standing: 0 })).to.deep.equal([[1, 'PRICE_PROTECTION']])
  })
})

import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { clear } from '../../../domain/auction/auction.ts'
import { Book, type RestingOrder } from '../../../domain/book/book.ts'
import { executableSteps, isCovered } from '../../../domain/orders/executable.ts'
import type { Side } from '../../../domain/orders/order.ts'
import { FLAT, type Position } from '../../../domain/positions/position.ts'
import { ONE, type Rate, type Seq, type Steps, type Ticks, type UserId } from '../../../domain/units.ts'
import { steps, ticks } from '../../support/markets.ts'
import { AS_OF } from '../support/any-auction.ts'
import { NO_FUNDING, oracle100, orders, positionAt, resting, roundMarket } from '../support/resting.ts'

/** Steps by order name. */
function executable(size: number, table: string): Record<string, number> {
  const { all, ...named } = orders(table)
  const bySeq = executableSteps(steps(size), all)
  return Object.fromEntries(Object.entries(named).map(([name, { seq }]) => [name, bySeq.get(seq) as number]))
}

describe('executableSteps', () => {
  it('when reduce-only orders exceed the position, it goes to the best limits first, then to earlier orders', () => {
    const asks = `
      A sell 104 x10 by 1 reduce-only
      B sell 102 x6 by 1 reduce-only
      C sell 104 x10 by 1 reduce-only`
    expect(executable(12, asks)).to.deep.equal({ A: 6, B: 6, C: 0 })
    const bids = `
      A buy 96 x10 by 1 reduce-only
      B buy 98 x6 by 1 reduce-only`
    expect(executable(-7, bids)).to.deep.equal({ A: 1, B: 6 })
  })

  it('when the account is flat or the order is on the side of its position, a reduce-only order has no steps', () => {
    expect(executable(0, 'A sell 104 x10 reduce-only')).to.deep.equal({ A: 0 })
    expect(executable(-5, 'A sell 104 x10 reduce-only')).to.deep.equal({ A: 0 })
  })

  it('when a plain order stands before a reduce-only order, it takes the position first', () => {
    const table = `
      P sell 101 x10 by 1
      R sell 102 x10 by 1 reduce-only`
    expect(executable(12, table)).to.deep.equal({ P: 10, R: 2 })
  })

  it('when the position is used up, a plain order counts as far as its reservation covers it', () => {
    const table = `
      R sell 101 x10 by 1 reduce-only
      P sell 102 x10 by 1 reserves 3`
    expect(executable(12, table)).to.deep.equal({ R: 10, P: 5 })
    expect(executable(-12, table)).to.deep.equal({ R: 0, P: 3 })
  })

  it('when a plain order and a reduce-only order have the same limit, the reduce-only order comes first', () => {
    const table = `
      P sell 101 x10 by 1
      R sell 101 x10 by 1 reduce-only`
    expect(executable(12, table)).to.deep.equal({ P: 10, R: 10 })
  })

  it('when an order is covered by its reservation, it counts whole at every position', () => {
    fc.assert(
      fc.property(anyBookSide('SHORT'), fc.integer({ min: -30, max: 30 }), (asks, size) => {
        const bySeq = executableSteps(steps(size), asks)
        for (const order of asks.filter(isCovered)) expect(bySeq.get(order.seq)).to.equal(order.remaining)
      }),
    )
  })
})

const ACCOUNTS = 4
const TAKER = 99 as UserId

/** Limit orders of a few accounts within the band of `roundMarket` on one side of the oracle price. */
function anyBookSide(side: Side): fc.Arbitrary<RestingOrder[]> {
  const anyOrder = fc
    .record({
      account: fc.integer({ min: 1, max: ACCOUNTS }),
      off: fc.integer({ min: 1, max: 4 }),
      remaining: fc.integer({ min: 1, max: 12 }),
      reduceOnly: fc.boolean(),
      covered: fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true })),
    })
    .map(({ account, off, remaining, reduceOnly, covered }) =>
      resting({
        ...{ account: account as UserId, side, remaining: steps(remaining), reduceOnly, acceptedAt: AS_OF },
        limit: ticks(side === 'SHORT' ? 100 + off : 100 - off),
        openable: steps(reduceOnly ? 0 : Math.round(covered * remaining)),
        reservedPrice: ticks(1_000_000),
      }),
    )
  return fc.array(anyOrder, { maxLength: 14 })
}

/** Positions with margin for any loss in the band. */
const anyPositions = fc
  .array(fc.integer({ min: -20, max: 20 }), { minLength: ACCOUNTS, maxLength: ACCOUNTS })
  .map((sizes) => {
    const margin = 100n * ONE
    return new Map(
      sizes.map((size, at) => [(at + 1) as UserId, positionAt(roundMarket, { size, entry: 100, margin })]),
    )
  })

/** What the levels of one side promise up to a price. */
function promised(
  orders: readonly RestingOrder[],
  positions: ReadonlyMap<UserId, Position>,
  reaches: (limit: Ticks) => boolean,
): Steps {
  let total = 0
  for (const [account, own] of Map.groupBy(orders, (order) => order.account)) {
    const bySeq = executableSteps(positions.get(account)?.size ?? steps(0), own)
    for (const { seq, limit } of own) if (reaches(limit)) total += bySeq.get(seq) as Steps
  }
  return total as Steps
}

/**
 * What a market order of a flat account gets in the next auction. The width of price protection is that of the
 * band, so a buy ends at its reserved price and a sell at the edge of the band.
 */
function filledBy(
  book: readonly RestingOrder[],
  positions: ReadonlyMap<UserId, Position>,
  { side, reservedPrice, size }: { readonly side: Side; readonly reservedPrice: Ticks; readonly size: Steps },
): number {
  const seq = 1_000_000 as Seq
  const taker = resting({ seq, account: TAKER, side, type: 'MARKET', remaining: size, acceptedAt: AS_OF })
  const clearing = clear({
    spec: roundMarket,
    book: Book.of([...book, { ...taker, reservedPrice }]),
    positions: (account) => positions.get(account) ?? FLAT,
    fundingIndex: NO_FUNDING,
    oracle: oracle100,
    asOf: AS_OF,
    standingSeq: (seq - 1) as Seq,
    priceProtection: (ONE / 10n) as Rate,
  })
  return clearing.fills.find((fill) => fill.seq === seq)?.fill ?? 0
}

describe('the steps that the levels promise up to a price', () => {
  it('when a fresh market buy reaches that price, it fills exactly these steps in the next auction', () => {
    const anyBook = fc.tuple(anyBookSide('LONG'), anyBookSide('SHORT'), anyPositions)
    const anyPrice = fc.integer({ min: 101, max: 105 })
    fc.assert(
      fc.property(
        anyBook,
        anyPrice,
        fc.integer({ min: 1, max: 40 }),
        ([bids, asks, positions], price, size) => {
          const reached = promised(asks, positions, (limit) => limit <= price)
          const buy = { side: 'LONG' as const, reservedPrice: ticks(price), size: steps(size) }
          const taken = filledBy([...bids, ...asks], positions, buy)
          expect(taken).to.equal(Math.min(size, reached))
        },
      ),
      { numRuns: 1000 },
    )
  })

  it('when a fresh market sell meets the bids, it fills exactly these steps in the next auction', () => {
    const anySize = fc.integer({ min: 1, max: 40 })
    fc.assert(
      fc.property(
        anyBookSide('LONG'),
        anyBookSide('SHORT'),
        anyPositions,
        anySize,
        (bids, asks, positions, size) => {
          const reached = promised(bids, positions, () => true)
          const sell = { side: 'SHORT' as const, reservedPrice: ticks(1_000_000), size: steps(size) }
          expect(filledBy([...bids, ...asks], positions, sell)).to.equal(Math.min(size, reached))
        },
      ),
      { numRuns: 1000 },
    )
  })

  it('when any book stands, the steps of an account that no reservation covers never exceed its position', () => {
    fc.assert(
      fc.property(anyBookSide('SHORT'), anyPositions, (asks, positions) => {
        for (const [account, { size }] of positions) {
          const own = asks.filter((order) => order.account === account)
          const bySeq = executableSteps(size, own)
          const beyondCover = own.map(({ seq, openable }) => (bySeq.get(seq) as number) - openable)
          const closing = beyondCover.reduce((sum, each) => sum + Math.max(0, each), 0)
          expect(closing).to.be.at.most(Math.max(0, size))
        }
      }),
    )
  })
})

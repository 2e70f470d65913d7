import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { Book, type RestingOrder } from '../../../domain/book/book.ts'
import { priceBand } from '../../../domain/market/band.ts'
import { priceOf } from '../../../domain/market/market.ts'
import { FLAT, type Position } from '../../../domain/positions/position.ts'
import {
  type BookQuotes,
  bestPrices,
  type MarkPriceInput,
  markPrice,
  nextMarkBasis,
} from '../../../domain/prices/mark.ts'
import { type Millis, ONE, type Price, type Seconds, type UserId } from '../../../domain/units.ts'
import { perpetual, steps, ticks } from '../../support/markets.ts'
import { NO_FUNDING, positionAt, resting } from '../support/resting.ts'

const at = (value: number) => value as Millis
const DEEP = 1000

/** A book with one deep level on either side, in ticks of 0.1 around an oracle price of 100 (1000 ticks). */
function input(
  bid: number | null,
  ask: number | null,
  more: Partial<MarkPriceInput> & { depth?: number } = {},
): MarkPriceInput {
  const remaining = steps(more.depth ?? DEEP)
  const orders = [
    ...(bid === null ? [] : [resting({ side: 'LONG', limit: ticks(bid), remaining })]),
    ...(ask === null ? [] : [resting({ side: 'SHORT', limit: ticks(ask), remaining })]),
  ]
  const market = { spec: perpetual, oracle: priceOf(perpetual, ticks(1000)), now: at(0) }
  const best = bestPrices(book(Book.of(orders)))
  return { ...market, best, last: null, ...more }
}

/** A book at an oracle price of 100 whose accounts have the positions, flat if not named. */
const book = (
  all: Book,
  positions: ReadonlyMap<UserId, Position> = new Map(),
  excluded: ReadonlySet<UserId> = new Set(),
): BookQuotes => ({
  spec: perpetual,
  oracle: priceOf(perpetual, ticks(1000)),
  book: all,
  positions: (account) => positions.get(account) ?? FLAT,
  fundingIndex: NO_FUNDING,
  excluded,
  now: at(5_000),
})

const NO_BASIS = { value: 0n, at: at(0) }
const inTicks = (price: Price): number => Number(price) / Number(perpetual.tick)

describe('markPrice', () => {
  for (const [name, markInput] of [
    ['a one-sided book', input(999, null)],
    ['a wide book', input(980, 1001)],
    ['a thin book', input(999, 1001, { depth: 20 })],
    ['an empty book', input(null, null)],
  ] as const) {
    it(`when there is ${name}, it is the oracle price`, () => {
      expect(inTicks(markPrice(markInput, { value: 5n * 10n ** 18n, at: at(0) }))).to.equal(1000)
    })
  }

  it('when the book has usable quotes, it is the median of basis, book and oracle price', () => {
    const above = input(1004, 1006)
    expect(inTicks(markPrice(above, NO_BASIS))).to.equal(1000)
    expect(inTicks(markPrice(above, { value: 3n * perpetual.tick, at: at(0) }))).to.equal(1003)
    expect(inTicks(markPrice(above, { value: 9n * perpetual.tick, at: at(0) }))).to.equal(1005)
  })

  it('when a clearing price lies between bid and ask, it counts for a minute', () => {
    const last = { price: ticks(1006), at: at(0) }
    const basis = { value: 90n * perpetual.tick, at: at(0) }
    expect(inTicks(markPrice(input(1004, 1006, { last, now: at(59_999) }), basis))).to.equal(1006)
    expect(inTicks(markPrice(input(1004, 1006, { last, now: at(60_000) }), basis))).to.equal(1005)
  })

  it('when any book and basis are markInput, it lies within the band', () => {
    const { lo, hi } = priceBand(perpetual, priceOf(perpetual, ticks(1000)))
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 3000 }),
        fc.integer({ min: 1, max: 20 }),
        fc.bigInt({ min: -(10n ** 21n), max: 10n ** 21n }),
        (bid, spread, value) => {
          const mark = inTicks(markPrice(input(bid, bid + spread), { value, at: at(0) }))
          expect(mark).to.be.within(lo, hi)
        },
      ),
    )
  })
})

describe('bestPrices', () => {
  const ask = (limit: number, fields: Partial<RestingOrder> = {}) =>
    resting({ side: 'SHORT', limit: ticks(limit), remaining: steps(DEEP), ...fields })
  const bid = (limit: number) => resting({ side: 'LONG', limit: ticks(limit), remaining: steps(DEEP) })
  const holder = 2 as UserId
  const reduceOnly = ask(1000, { account: holder, reduceOnly: true })
  const askOf = (orders: readonly RestingOrder[], size = 0, highestBid = 999): number | null => {
    const position = positionAt(perpetual, { size, entry: 1000, margin: 10n * ONE })
    const best = bestPrices(book(Book.of([bid(highestBid), ...orders]), new Map([[holder, position]])))
    return best === null ? null : inTicks(best.ask)
  }

  it('when a reduce-only order has no position to reduce, it is not the best price', () => {
    expect(askOf([reduceOnly, ask(1002)])).to.equal(1002)
    expect(askOf([reduceOnly, ask(1002)], -DEEP)).to.equal(1002)
    expect(askOf([reduceOnly])).to.equal(null)
    expect(askOf([reduceOnly, ask(1002)], DEEP)).to.equal(1000)
  })

  it('when the position allows a reduce-only order less than five minimum orders, its level is thin', () => {
    expect(askOf([reduceOnly, ask(1002)], 5 * perpetual.minQuantity - 1)).to.equal(null)
    expect(askOf([reduceOnly, ask(1002)], 5 * perpetual.minQuantity)).to.equal(1000)
  })

  it('when an order has expired, it is not the best price', () => {
    expect(askOf([ask(1000, { expiration: 4 as Seconds }), ask(1002)])).to.equal(1002)
  })

  it('when an account takes part in no auction, its orders are not the best prices', () => {
    const all = Book.of([bid(999), ask(1001, { account: holder }), ask(1002)])
    const best = (excluded: readonly UserId[]) => bestPrices(book(all, new Map(), new Set(excluded)))
    expect(inTicks(best([])?.ask as Price)).to.equal(1001)
    expect(inTicks(best([holder])?.ask as Price)).to.equal(1002)
  })

  it('when the margin requirement keeps an order from its limit, it counts at the limit at which it can trade', () => {
    // O(1 + IMR) - limit / leverage = 104.5 - 4.95, at the highest leverage.
    expect(askOf([ask(990, { leverage: 20 }), ask(1010)], 0, 985)).to.equal(996)
  })
})

describe('nextMarkBasis', () => {
  it('when time passes, it starts at 0 and moves towards the book by the elapsed time', () => {
    const first = nextMarkBasis(null, input(1004, 1006))
    expect(first.value).to.equal(0n)
    const later = nextMarkBasis(first, input(1004, 1006, { now: at(15_000) }))
    expect(later.value).to.equal((5n * perpetual.tick) / 10n)
    expect(nextMarkBasis(later, input(1004, 1006, { now: at(1_000_000) })).value).to.equal(
      5n * perpetual.tick,
    )
  })

  it('when the book has no usable quotes, it moves back to 0', () => {
    const basis = { value: 150n, at: at(0) }
    expect(nextMarkBasis(basis, input(null, null, { now: at(75_000) })).value).to.equal(75n)
  })
})

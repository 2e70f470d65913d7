import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { Book } from '../../../domain/book/book.ts'
import { priceBand } from '../../../domain/market/band.ts'
import { priceOf } from '../../../domain/market/market.ts'
import { type MarkPriceInput, markPrice, nextMarkBasis } from '../../../domain/prices/mark.ts'
import type { Millis, Price } from '../../../domain/units.ts'
import { perpetual, steps, ticks } from '../../support/markets.ts'
import { resting } from '../support/resting.ts'

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
  return {
    spec: perpetual,
    oracle: priceOf(perpetual, ticks(1000)),
    book: Book.of(orders),
    last: null,
    now: at(0),
    ...more,
  }
}

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

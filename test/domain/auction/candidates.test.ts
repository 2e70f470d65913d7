import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { clear } from '../../../domain/auction/auction.ts'
import {
  bandLimit,
  candidatesOf,
  type Exclusions,
  eligibility,
  NO_EXCLUSIONS,
  overdue,
} from '../../../domain/auction/candidates.ts'
import { Book, type RestingOrder } from '../../../domain/book/book.ts'
import { priceBand } from '../../../domain/market/band.ts'
import type { Millis, Seconds, Seq, UserId } from '../../../domain/units.ts'
import { ticks } from '../../support/markets.ts'
import { AS_OF, anyBatch, toInput } from '../support/any-auction.ts'
import { orders, resting } from '../support/resting.ts'

const band = { lo: ticks(95), hi: ticks(105) }
const NO_PROTECTIONS = new Map()
const at = (ms: number): Millis => ms as Millis

const found = (all: readonly RestingOrder[], excluded: Exclusions = NO_EXCLUSIONS): Seq[] => {
  const { buys, sells } = candidatesOf({
    ...{ book: Book.of(all), band, isEligible: eligibility(at(0), excluded) },
    protections: NO_PROTECTIONS,
  })
  return [...buys, ...sells].map(({ seq }) => seq)
}

describe('overdue', () => {
  it('when orders have expired or market orders have waited 2 s, it returns them by seq', () => {
    const book = Book.of([
      resting({ seq: 4 as Seq, expiration: 10 as Seconds }),
      resting({ seq: 3 as Seq, expiration: 11 as Seconds }),
      resting({ seq: 2 as Seq, type: 'MARKET', acceptedAt: at(8_001) }),
      resting({ seq: 1 as Seq, type: 'MARKET', acceptedAt: at(8_002) }),
      resting({ seq: 5 as Seq, type: 'MARKET', acceptedAt: at(0), expiration: 9 as Seconds }),
      resting({ seq: 6 as Seq, acceptedAt: at(0) }),
    ])
    expect(overdue(book, at(9_999)), 'the 9th second is over').to.deep.equal([{ seq: 5, reason: 'EXPIRED' }])
    expect(overdue(book, at(10_001)), 'the 10th second is over').to.deep.equal([
      { seq: 2, reason: 'NO_BATCH_IN_TIME' },
      { seq: 4, reason: 'EXPIRED' },
      { seq: 5, reason: 'EXPIRED' },
    ])
  })
})

describe('candidatesOf', () => {
  it('when the sides do not cross, it returns no limit orders', () => {
    expect(found(orders('A buy 99 x1\nB sell 100 x1').all)).to.deep.equal([])
  })

  it('when the sides cross, it returns the orders that reach the other side, the best first', () => {
    const { all } = orders(`
      A buy 101 x1
      B sell 100 x1
      C buy 100 x1
      D buy 99 x1
      E sell 102 x1
      F sell 101 x1`)
    expect(found(all)).to.deep.equal([1, 3, 2, 6])
  })

  it('when there is a market order, it returns the other side up to the edge of the band', () => {
    const { all } = orders(`
      A buy market x1
      B sell 105 x1
      C sell 106 x1
      D buy 94 x1
      E sell 90 x1`)
    expect(found(all)).to.deep.equal([1, 5, 2])
  })

  it('when a market order has no opposite order, it returns the market order', () => {
    expect(found(orders('A buy market x1\nB buy 99 x1').all)).to.deep.equal([1])
  })

  it('when orders are expired or excluded, it skips them', () => {
    const all = [
      resting({ seq: 1 as Seq, limit: ticks(104), expiration: 0 as Seconds, account: 7 as UserId }),
      resting({ seq: 2 as Seq, limit: ticks(100) }),
      resting({ seq: 3 as Seq, limit: ticks(99), side: 'SHORT' }),
      resting({ seq: 4 as Seq, limit: ticks(101), side: 'SHORT' }),
    ]
    expect(found(all)).to.deep.equal([1, 2, 3, 4])
    expect(found(all, { accounts: new Set([7 as UserId]), orders: new Set() })).to.deep.equal([2, 3])
    expect(found(all, { accounts: new Set(), orders: new Set([1 as Seq, 2 as Seq]) })).to.deep.equal([])
  })

  it('when any book is searched, it returns every order in the band that reaches a live order of the other side', () => {
    fc.assert(
      fc.property(anyBatch(), (batch) => {
        const { spec, oracle, orders: all, asOf } = batch
        const protections = new Map(clear(toInput(batch)).protections.map((one) => [one.seq, one]))
        const range = priceBand(spec, oracle)
        const dead = new Set(overdue(Book.of(all), asOf).map(({ seq }) => seq))
        const live = all.filter(
          (order) =>
            !dead.has(order.seq) &&
            (order.type === 'MARKET' ||
              (order.side === 'LONG' ? order.limit >= range.lo : order.limit <= range.hi)),
        )
        const reaches = (order: RestingOrder): boolean =>
          live.some((other) => {
            const [buy, sell] = order.side === 'LONG' ? [order, other] : [other, order]
            return (
              other.side !== order.side &&
              bandLimit(buy, range, protections) >= bandLimit(sell, range, protections)
            )
          })
        const expected = live.filter((order) => order.type === 'MARKET' || reaches(order))
        const { buys, sells } = candidatesOf({
          ...{ book: Book.of(all), band: range, isEligible: eligibility(AS_OF, NO_EXCLUSIONS) },
          protections,
        })
        const seqs = [...buys, ...sells].map(({ seq }) => seq)
        expect(seqs.toSorted((a, b) => a - b)).to.deep.equal(
          expected.map(({ seq }) => seq).sort((a, b) => a - b),
        )
      }),
    )
  })
})

import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { Book, type RestingOrder } from '../../../domain/book/book.ts'
import { InvariantError } from '../../../domain/invariant.ts'
import type { Side } from '../../../domain/orders/order.ts'
import type { Millis, Seconds, Seq, Ticks, UserId } from '../../../domain/units.ts'
import { steps, ticks } from '../../support/markets.ts'
import { orders, resting } from '../support/resting.ts'

const anyOrders = fc
  .array(
    fc.record({
      account: fc.integer({ min: 1, max: 4 }),
      side: fc.constantFrom<Side>('LONG', 'SHORT'),
      isMarket: fc.oneof(fc.constant(false), fc.constant(false), fc.boolean()),
      limit: fc.integer({ min: 1, max: 12 }),
      remaining: fc.integer({ min: 1, max: 9 }),
      expiration: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 5 })),
    }),
    { maxLength: 40, size: 'max' },
  )
  .map((fields) =>
    fields.map((field, i) =>
      resting({
        seq: (i + 1) as Seq,
        account: field.account as UserId,
        side: field.side,
        type: field.isMarket ? 'MARKET' : 'LIMIT',
        limit: ticks(field.limit),
        remaining: steps(field.remaining),
        expiration: field.expiration as Seconds,
      }),
    ),
  )

const moments = [0, 1, 999, 1000, 1001, 2000, 3001, 4999, 5000, 5001]

/** The results of every query of a book. */
const everything = (book: Book) => ({
  size: book.size,
  orders: book.orders(),
  accounts: [1, 2, 3, 4].map((account) => book.ordersOf(account as UserId)),
  sides: (['LONG', 'SHORT'] as const).map((side) => ({
    markets: [...book.marketOrders(side)],
    levels: [...book.levels(side)].map((level) => ({ ...level, orders: [...level.orders] })),
    best: book.best(side)?.price,
  })),
  expired: moments.map((asOf) => book.expired(asOf as Millis)),
})

/** The same results from a plain list. */
function obvious(all: readonly RestingOrder[]) {
  const bySeq = all.toSorted((a, b) => a.seq - b.seq)
  const sideOf = (side: Side) => {
    const limits = bySeq.filter((order) => order.side === side && order.type === 'LIMIT')
    const prices = [...new Set(limits.map(({ limit }) => limit))].sort((a, b) =>
      side === 'LONG' ? b - a : a - b,
    )
    return {
      markets: bySeq.filter((order) => order.side === side && order.type === 'MARKET'),
      levels: prices.map((price) => {
        const own = limits.filter(({ limit }) => limit === price)
        return { price, steps: own.reduce((sum, { remaining }) => sum + remaining, 0), orders: own }
      }),
      best: prices[0],
    }
  }
  return {
    size: all.length,
    orders: bySeq,
    accounts: [1, 2, 3, 4].map((account) => bySeq.filter((order) => order.account === account)),
    sides: [sideOf('LONG'), sideOf('SHORT')],
    expired: moments.map((asOf) =>
      bySeq.filter(({ expiration }) => expiration !== 0 && asOf > expiration * 1000).map(({ seq }) => seq),
    ),
  }
}

describe('Book', () => {
  it('when orders are inserted in any sequence, it returns the same as a plain list', () => {
    const shuffled = anyOrders.chain((all) => fc.shuffledSubarray(all, { minLength: all.length }))
    fc.assert(
      fc.property(shuffled, (all) => {
        expect(everything(Book.of(all))).to.deep.equal(obvious(all))
      }),
    )
  })

  it('when orders are removed, filled and replaced, it equals a book of the remaining orders', () => {
    const change = fc.record({
      at: fc.nat({ max: 39 }),
      does: fc.constantFrom('remove' as const, 'reduce' as const, 'replace' as const),
      amount: fc.integer({ min: 1, max: 9 }),
    })
    fc.assert(
      fc.property(anyOrders, fc.array(change, { maxLength: 40, size: 'max' }), (all, changes) => {
        const book = Book.of(all)
        const left = new Map(all.map((order) => [order.seq, order]))
        for (const { at, does, amount } of changes) {
          const order = left.get((at + 1) as Seq)
          if (order === undefined) continue
          const rest = order.remaining - Math.min(amount, order.remaining)
          if (does === 'remove' || (does === 'reduce' && rest === 0)) left.delete(order.seq)
          else if (does === 'reduce') {
            left.set(order.seq, {
              ...order,
              remaining: steps(rest),
              openable: steps(Math.min(order.openable, rest)),
            })
          } else left.set(order.seq, { ...order, remaining: steps(amount), openable: steps(0) })

          if (does === 'remove') expect(book.remove(order.seq)).to.deep.equal(order)
          else if (does === 'reduce') book.reduce(order.seq, steps(order.remaining - rest), steps(0))
          else book.replace({ ...order, remaining: steps(amount), openable: steps(0) })
        }
        expect(everything(book)).to.deep.equal(obvious([...left.values()]))
      }),
    )
  })

  it('when levels are iterated up to a price, it yields them from the best price to that price', () => {
    const { all } = orders(`
      A buy 100 x1
      B buy 102 x2
      C buy 101 x4
      D sell 105 x8
      E sell 103 x16`)
    const book = Book.of(all)
    const prices = (side: Side, worst: number) =>
      [...book.levels(side, worst as Ticks)].map(({ price }) => price)
    expect(prices('LONG', 101)).to.deep.equal([102, 101])
    expect(prices('SHORT', 104)).to.deep.equal([103])
    expect(prices('SHORT', 105)).to.deep.equal([103, 105])
  })

  it('when an order is filled, it subtracts the fill from the order and the opened steps from its reservation', () => {
    const order = resting({ remaining: steps(10), openable: steps(4) })
    const book = Book.of([order])
    book.reduce(order.seq, steps(5), steps(3))
    expect(book.get(order.seq)).to.deep.equal({ ...order, remaining: 5, openable: 1 })
    book.reduce(order.seq, steps(5), steps(1))
    expect(book.size).to.equal(0)
  })

  it('when an operation violates an invariant of the book, it throws', () => {
    const order = resting({ remaining: steps(3) })
    const book = Book.of([order])
    expect(() => book.insert(order)).to.throw(InvariantError)
    expect(() => book.insert(resting({ remaining: steps(0) }))).to.throw(InvariantError)
    expect(() => book.reduce(order.seq, steps(4), steps(0))).to.throw(InvariantError)
    expect(() => book.replace({ ...order, limit: ticks(7) })).to.throw(InvariantError)
    expect(book.remove(99 as Seq)).to.equal(undefined)
  })
})

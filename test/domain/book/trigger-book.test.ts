import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { TriggerBook, type WaitingOrder } from '../../../domain/book/trigger-book.ts'
import { isExpired, isTriggered, ORDER_TYPES, type OrderType } from '../../../domain/orders/order.ts'
import type { Millis, Price, Seconds, Seq, Steps, Ticks, UserId } from '../../../domain/units.ts'

const TICK = 4n as Price
const CONDITIONAL = ORDER_TYPES.filter((type) => type !== 'MARKET' && type !== 'LIMIT')

const waiting = (seq: number, changes: Partial<WaitingOrder> = {}): WaitingOrder => ({
  ...{ seq: seq as Seq, account: 1 as UserId, side: 'LONG', type: 'STOP_MARKET', trigger: 100 as Ticks },
  ...{ limit: 0 as Ticks, leverage: 1, reduceOnly: false, remaining: 10 as Steps, openable: 10 as Steps },
  ...{ reservedPrice: 105 as Ticks, expiration: 0 as Seconds, ...changes },
})

const anyWaiting = (seq: number): fc.Arbitrary<WaitingOrder> =>
  fc
    .record({
      account: fc.integer({ min: 1, max: 3 }).map((id) => id as UserId),
      side: fc.constantFrom('LONG' as const, 'SHORT' as const),
      type: fc.constantFrom(...(CONDITIONAL as OrderType[])),
      trigger: fc.integer({ min: 90, max: 110 }).map((ticks) => ticks as Ticks),
      expiration: fc.constantFrom(0, 10, 11, 12).map((second) => second as Seconds),
    })
    .map((changes) => waiting(seq, changes))

const anyOrders = fc
  .integer({ min: 0, max: 40 })
  .chain((count) => fc.tuple(...Array.from({ length: count }, (_, at) => anyWaiting(at + 1))))

const bookOf = (orders: readonly WaitingOrder[]): TriggerBook => {
  const book = new TriggerBook()
  for (const order of orders) book.insert(order)
  return book
}

const seqsOf = (orders: readonly WaitingOrder[]): number[] => orders.map(({ seq }) => seq)

describe('TriggerBook', () => {
  it('when the mark moves over any set of waiting orders, it returns the triggered orders by seq, as a full scan does', () => {
    fc.assert(
      fc.property(
        anyOrders,
        fc.bigInt({ min: 350n, max: 450n }),
        fc.integer({ min: 9_990, max: 12_010 }),
        (all, wei, now) => {
          const mark = wei as Price
          const asOf = now as Millis
          const book = bookOf(all.toReversed())
          const hit = all.filter((order) => isTriggered(order, mark, TICK))
          expect(seqsOf(book.triggered(mark, TICK))).to.deep.equal(seqsOf(hit))
          const dead = all.filter(({ expiration }) => isExpired(expiration, asOf))
          expect(book.expired(asOf)).to.deep.equal(seqsOf(dead))
          for (const account of [1, 2, 3] as UserId[]) {
            const own = all.filter((order) => order.account === account)
            expect(book.ordersOf(account)).to.deep.equal(own)
          }
          for (const { seq } of hit) book.remove(seq)
          expect(book.triggered(mark, TICK)).to.deep.equal([])
          expect(book.orders()).to.deep.equal(all.filter((order) => !hit.includes(order)))
          expect(book.size).to.equal(all.length - hit.length)
        },
      ),
    )
  })

  it('when the mark lies between two ticks, it triggers the orders on either side exactly', () => {
    const book = bookOf([waiting(1), waiting(2, { side: 'SHORT' })])
    const at = (mark: bigint) => seqsOf(book.triggered(mark as Price, TICK))
    expect([at(399n), at(400n), at(401n)]).to.deep.equal([[2], [1, 2], [1]])
  })

  it('when a reservation changes, the order stays waiting with its trigger', () => {
    const book = bookOf([waiting(1)])
    book.reserve(1 as Seq, 3 as Steps, 104 as Ticks)
    expect(book.get(1 as Seq)).to.deep.equal(
      waiting(1, { openable: 3 as Steps, reservedPrice: 104 as Ticks }),
    )
    expect(seqsOf(book.triggered(400n as Price, TICK))).to.deep.equal([1])
  })

  it('when an order is inserted twice or does not wait, it throws, and when an unknown seq is removed, it does nothing', () => {
    const book = bookOf([waiting(1)])
    expect(() => book.insert(waiting(1))).to.throw('a seq waits once')
    expect(() => book.insert(waiting(2, { type: 'LIMIT' }))).to.throw('only a conditional order waits')
    expect(book.remove(9 as Seq)).to.equal(undefined)
  })
})

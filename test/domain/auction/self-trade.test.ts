import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { preventSelfTrades } from '../../../domain/auction/self-trade.ts'
import type { RestingOrder } from '../../../domain/book/book.ts'
import type { Ticks } from '../../../domain/units.ts'
import { anyBatch } from '../support/any-auction.ts'
import { orders } from '../support/resting.ts'

/** Forced orders that reach every price. */
const everyPrice = ({ side }: RestingOrder): Ticks => (side === 'LONG' ? 1_000_000 : 1) as Ticks

const table = [
  { name: 'when limits do not cross, all orders stay', book: 'A buy 99 x1\nB sell 100 x1', cancelled: [] },
  {
    name: 'when two limits cross, the later is cancelled',
    book: 'A buy 100 x1\nB sell 100 x1',
    cancelled: [2],
  },
  {
    name: 'when a cancelled order crosses a later one, the later one stays',
    book: 'A buy 100 x1\nB sell 99 x1\nC buy 99 x1',
    cancelled: [2],
  },
  {
    name: 'when two market orders are opposite, the later is cancelled',
    book: 'A sell market x1\nB buy market x9\nC sell market x1',
    cancelled: [2],
  },
  {
    name: 'when a market order and a limit order are opposite, both stay',
    book: 'A buy market x1\nB sell 100 x1',
    cancelled: [],
  },
  {
    name: 'when the latest order is forced, it stays and all opposite orders are cancelled',
    book: 'A buy 100 x1\nB buy market x1\nC sell 103 x1\nD sell market x1 forced',
    cancelled: [1, 2],
  },
]

describe('preventSelfTrades', () => {
  for (const { name, book, cancelled } of table) {
    it(name, () => {
      const result = preventSelfTrades(orders(book).all, everyPrice)
      expect(result.cancelled.toSorted((a, b) => a - b)).to.deep.equal(cancelled)
      expect(result.retained.length + cancelled.length).to.equal(orders(book).all.length)
    })
  }

  it('when a limit order lies beyond the protection of a forced order, both stay', () => {
    const { all } = orders('A buy 96 x1\nB buy 97 x1\nC sell market x1 forced')
    expect(preventSelfTrades(all, () => 97 as Ticks).cancelled).to.deep.equal([2])
  })

  it('when an account has limit orders, its market orders stop one tick short of its best retained limit on the other side', () => {
    const { all } = orders(`
      A sell 103 x1
      B sell 101 x1
      C buy 99 x1
      D buy 101 x1`)
    expect(preventSelfTrades(all, everyPrice).marketOrderBounds).to.deep.equal({
      highestBuy: 100,
      lowestSell: 100,
    })
  })

  it('when any orders are checked, no two retained orders can meet, and every cancelled one could meet a retained one', () => {
    fc.assert(
      fc.property(anyBatch({ accounts: 1 }), ({ orders: all }) => {
        const { retained, cancelled, marketOrderBounds } = preventSelfTrades(all, everyPrice)
        const meets = (a: RestingOrder, b: RestingOrder): boolean => {
          if (a.side === b.side) return false
          const [buy, sell] = a.side === 'LONG' ? [a, b] : [b, a]
          if (a.forced || b.forced) return true
          if (a.type !== b.type) {
            return a.type === 'MARKET' ? false : meets(b, a)
          }
          return a.type === 'MARKET' || buy.limit >= sell.limit
        }
        for (const a of retained) for (const b of retained) expect(meets(a, b)).to.equal(false)
        for (const seq of cancelled) {
          const order = all.find((each) => each.seq === seq) as RestingOrder
          const cause = retained.some((other) => meets(order, other) && (other.forced || other.seq < seq))
          expect(cause, `order ${seq}`).to.equal(true)
        }
        for (const { side, type, limit } of retained) {
          if (type === 'MARKET') continue
          if (side === 'LONG') expect(marketOrderBounds.lowestSell).to.be.greaterThan(limit)
          else expect(marketOrderBounds.highestBuy).to.be.lessThan(limit)
        }
      }),
    )
  })
})

/** The cost of finding why market orders have steps left, counted in reads of orders: it must not grow with the square of a batch. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { clear } from '../../../domain/auction/auction.ts'
import { Book, type RestingOrder } from '../../../domain/book/book.ts'
import { FLAT } from '../../../domain/positions/position.ts'
import type { Millis, Rate, Seq, UserId } from '../../../domain/units.ts'
import { rate, steps, ticks } from '../../support/markets.ts'
import { NO_FUNDING, oracle100, resting, roundMarket } from '../support/resting.ts'

const EACH = 1000
/** More than the passes over the book that one auction needs; far fewer than EACH. */
const MOST_READS = 100

/** One ask at the oracle price, `EACH` asks at one level beyond every protection, and `EACH` market buys. */
function readsPerQuote(buyerOf: (at: number) => number): number {
  let reads = 0
  const seller = 5_000_000
  const far = Array.from({ length: EACH }, (_, at): RestingOrder => {
    const { account: _account, ...order } = resting({ side: 'SHORT', limit: ticks(104) })
    return Object.defineProperty(order, 'account', {
      enumerable: true,
      get: () => {
        reads++
        return (seller + at) as UserId
      },
    }) as RestingOrder
  })
  const near = resting({ account: 1 as UserId, side: 'SHORT', limit: ticks(100), remaining: steps(20) })
  const buys = Array.from({ length: EACH }, (_, at) =>
    resting({ account: buyerOf(seller + at) as UserId, type: 'MARKET' }),
  )
  const { cancels } = clear({
    ...{ spec: roundMarket, book: Book.of([near, ...far, ...buys]), positions: () => FLAT },
    ...{ fundingIndex: NO_FUNDING, oracle: oracle100, asOf: 1 as Millis },
    standingSeq: Number.MAX_SAFE_INTEGER as Seq,
    priceProtection: rate('0.01') as Rate,
  })
  expect(cancels).to.have.length(EACH)
  return reads / EACH
}

describe('clear: the cost of remainders', () => {
  it('when many market orders face many quotes at one level, it reads each quote a bounded number of times', () => {
    expect(readsPerQuote((seller) => seller * 2)).to.be.below(MOST_READS)
  })

  it('when each of many market orders has a quote of its own at that level, it reads each a bounded number of times', () => {
    expect(readsPerQuote((seller) => seller)).to.be.below(MOST_READS)
  })
})

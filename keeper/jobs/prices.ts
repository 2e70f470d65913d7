/** Publishes a market's oracle and mark price, at most once a second and when they have changed. */
import type { Book } from '../../domain/book.ts'
import { type Basis, markPrice, nextBasis } from '../../domain/mark.ts'
import type { MarketSpec } from '../../domain/market.ts'
import type { AuctionStore, Clock, Fence, Prices } from '../ports.ts'

export interface PricesPorts {
  readonly store: AuctionStore
  readonly clock: Clock
}

export interface PricePublication {
  /** Does nothing before a second has passed since the last time. `book` is null where nobody knows it at the moment. */
  publish(fence: Fence, book: Book | null): Promise<void>
}

const PAUSE_MS = 1000
/** Prices that stand still are still told with a newer time, this often. */
const REPEAT_MS = 5000

/** The average behind the mark lives in memory: a new owner starts from the oracle price. */
export function createPricePublication({ store, clock }: PricesPorts, spec: MarketSpec): PricePublication {
  let basis: Basis | null = null
  let looked = 0
  let last: Prices | null = null
  return {
    async publish(fence, book) {
      const now = clock.now()
      if (book === null || now - looked < PAUSE_MS) return
      looked = now
      const { report, lastPrice } = await store.peek(spec.marketId)
      if (report === null) return
      const input = { spec, oracle: report.price, book, last: lastPrice, now }
      basis = nextBasis(basis, input)
      const prices: Prices = { oracle: report, mark: markPrice(input, basis), at: now }
      if (last !== null && !isNews(last, prices)) return
      await store.turn(spec.marketId, fence, (turn) => turn.publishPrices(prices))
      last = prices
    },
  }
}

const isNews = (last: Prices, { oracle, mark }: Prices): boolean =>
  mark !== last.mark ||
  oracle.price !== last.oracle.price ||
  oracle.observedAt - last.oracle.observedAt >= REPEAT_MS

/** The prices of a run: the markets' feeds, taken over from the simulated oracle. */
import type { Client } from '../../../client/client.ts'
import { waitFor } from '../../../client/wait-for.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { Price } from '../../../domain/units.ts'
import { type FeedOverride, overrideFeed } from '../../../stack/feed-override.ts'
import type { Stack } from '../../../stack/stack.ts'
import { BUDGET_MS } from './paper.ts'

interface Feed {
  readonly middle: bigint
  readonly taken: FeedOverride
  now: Price
  /** What was said before that: it is heard of for a moment still. */
  before: Price
}

export class Prices {
  readonly #feeds = new Map<number, Feed>()

  /** Where each market stands now is its middle. */
  static async open(stack: Stack, specs: readonly MarketSpec[], reader: Client): Promise<Prices> {
    const prices = new Prices()
    for (const { marketId } of specs) {
      const { oracle_price_e18_raw } = await waitFor(
        () => reader.marketData.market(marketId),
        (market) => market.oracle_price_e18_raw !== null,
      )
      const middle = BigInt(oracle_price_e18_raw ?? 0)
      const now = middle as Price
      prices.#feeds.set(marketId, { middle, now, before: now, taken: overrideFeed(stack, marketId) })
    }
    return prices
  }

  async close(): Promise<void> {
    for (const { taken } of this.#feeds.values()) await taken.release()
  }

  /** Comes back when everybody is told. `moved`: thousandths of each market's middle, in the order of the markets. */
  async move(moved: readonly number[], reader: Client): Promise<void> {
    for (const [at, [marketId, feed]] of [...this.#feeds].entries()) {
      feed.before = feed.now
      feed.now = this.away(marketId, moved[at] ?? 0) as Price
      feed.taken.setPrice(feed.now)
    }
    for (const [marketId, { now }] of this.#feeds) {
      await waitFor(
        () => reader.marketData.market(marketId),
        ({ oracle_price_e18_raw }) => BigInt(oracle_price_e18_raw ?? 0) === now,
        { budgetMs: BUDGET_MS },
      )
    }
  }

  now = (marketId: number): Price => this.#feed(marketId).now
  /** The newest first. */
  recent = (marketId: number): Price[] => [this.#feed(marketId).now, this.#feed(marketId).before]
  middle = (marketId: number): bigint => this.#feed(marketId).middle
  away = (marketId: number, thousandths: number): bigint =>
    (this.middle(marketId) * BigInt(1000 + thousandths)) / 1000n

  #feed(marketId: number): Feed {
    const feed = this.#feeds.get(marketId)
    if (feed === undefined) throw new RangeError(`there is no market ${marketId} in this run`)
    return feed
  }
}

/** Publishes the oracle prices of a run in place of the simulated oracle. */
import type { Client } from '../../../client/client.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { Price } from '../../../domain/units.ts'
import { type FeedOverride, overrideFeed } from '../../../stack/feed-override.ts'
import type { Stack } from '../../../stack/stack.ts'
import { waitFor } from '../../support/patience.ts'
import { BUDGET_MS } from './trader-notes.ts'

interface Feed {
  readonly center: bigint
  readonly override: FeedOverride
  now: Price
  /** The price before `now`: the keeper may still read it for a moment. */
  before: Price
}

export class Prices {
  readonly #feeds = new Map<number, Feed>()
  #moved: readonly number[] = []

  /** Each market's price at the start is its center. */
  static async open(stack: Stack, specs: readonly MarketSpec[], reader: Client): Promise<Prices> {
    const prices = new Prices()
    for (const { marketId } of specs) {
      const { oracle_price_e18_raw } = await waitFor(
        () => reader.marketData.market(marketId),
        (market) => market.oracle_price_e18_raw !== null,
      )
      const center = BigInt(oracle_price_e18_raw ?? 0)
      const now = center as Price
      prices.#feeds.set(marketId, { center, now, before: now, override: overrideFeed(stack, marketId) })
    }
    return prices
  }

  async close(): Promise<void> {
    for (const { override } of this.#feeds.values()) await override.release()
  }

  /** Returns once the api shows the new prices. `moved`: thousandths of each market's center, in the order of the markets. */
  async publish(moved: readonly number[], reader: Client): Promise<void> {
    this.#moved = moved
    for (const [at, [marketId, feed]] of [...this.#feeds].entries()) {
      feed.before = feed.now
      feed.now = this.priceAt(marketId, moved[at] ?? 0) as Price
      feed.override.setPrice(feed.now)
    }
    for (const [marketId, { now }] of this.#feeds) {
      await waitFor(
        () => reader.marketData.market(marketId),
        ({ oracle_price_e18_raw }) => BigInt(oracle_price_e18_raw ?? 0) === now,
        { budgetMs: BUDGET_MS },
      )
    }
  }

  /** The distance of the market's price from its center, in thousandths. */
  moved = (marketId: number): number => this.#moved[[...this.#feeds.keys()].indexOf(marketId)] ?? 0

  /** Moves the price of one market by thousandths of its center. */
  move(marketId: number, thousandths: number, reader: Client): Promise<void> {
    const moved = [...this.#feeds.keys()].map((id) => this.moved(id) + (id === marketId ? thousandths : 0))
    return this.publish(moved, reader)
  }

  now = (marketId: number): Price => this.#feed(marketId).now
  /** The current and the previous price. */
  recent = (marketId: number): Price[] => [this.#feed(marketId).now, this.#feed(marketId).before]
  center = (marketId: number): bigint => this.#feed(marketId).center
  priceAt = (marketId: number, thousandths: number): bigint =>
    (this.center(marketId) * BigInt(1000 + thousandths)) / 1000n

  #feed(marketId: number): Feed {
    const feed = this.#feeds.get(marketId)
    if (feed === undefined) throw new RangeError(`market ${marketId} is not part of this run`)
    return feed
  }
}

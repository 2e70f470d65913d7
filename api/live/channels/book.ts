/** `market.<id>.book`: the levels of a market's order book. */
import { type FeedLevel, marketHead } from '../../../db/feed-schema.ts'
import { marketShard } from '../../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { bookLevels, LEVEL_TABLES } from '../../order-book/query.ts'
import { levelView } from '../../order-book/view.ts'
import type { Channel } from '../channel.ts'

/** More levels than an order book can have. */
const ALL = 2 ** 31 - 1

export function bookChannel(spec: MarketSpec): Channel {
  const { marketId, symbol } = spec
  const data = (long: readonly object[], short: readonly object[]) => ({
    ...{ market_id: marketId, symbol, long_levels: long, short_levels: short },
  })
  return {
    head: marketHead(marketId, 'book'),
    scope: { tables: LEVEL_TABLES, shard: marketShard(marketId) },
    isConflatable: true,
    pacing: 'outside batches',
    async snapshot(tx) {
      const { long, short } = await bookLevels(tx, marketId, ALL)
      return data(
        long.map((row) => levelView(spec, row)),
        short.map((row) => levelView(spec, row)),
      )
    },
    update(rows) {
      const last = new Map<string, FeedLevel>()
      for (const row of rows) for (const level of row.levels) last.set(`${level[0]} ${level[1]}`, level)
      const views = [...last.values()].map(([side, price, quantity, orders]) =>
        levelView(spec, { side, price, quantity, order_count: quantity === 0 ? 0 : orders }),
      )
      return data(
        views.filter(({ side }) => side === 'LONG'),
        views.filter(({ side }) => side === 'SHORT'),
      )
    },
  }
}

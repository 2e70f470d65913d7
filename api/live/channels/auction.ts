/** `market.<id>.auction`: the batches of a market, when they clear and when their status changes. */
import { marketHead } from '../../../db/feed-schema.ts'
import { marketShard } from '../../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { BATCH_TABLES, batchesOfMarket } from '../../auctions/query.ts'
import { auctionView } from '../../auctions/view.ts'
import type { Channel } from '../channel.ts'

/** Auctions of a snapshot, newest first. */
export const AUCTIONS = 20

export function auctionChannel(spec: MarketSpec): Channel {
  const { marketId, symbol } = spec
  return {
    head: marketHead(marketId, 'auction'),
    scope: { tables: BATCH_TABLES, shard: marketShard(marketId) },
    isConflatable: false,
    pacing: 'outside batches',
    async snapshot(tx) {
      const rows = await batchesOfMarket(tx, marketId, {
        limit: AUCTIONS,
        before: null,
        from: null,
        to: null,
      })
      return {
        market_id: marketId,
        symbol,
        auctions: rows.slice(0, AUCTIONS).map((row) => auctionView(spec, row)),
      }
    },
    update([row]) {
      const { batches = [] } = row?.changes ?? {}
      return { market_id: marketId, symbol, auctions: batches.map((batch) => auctionView(spec, batch)) }
    },
  }
}

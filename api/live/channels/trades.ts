/** `market.<id>.trades`: the public fills of a market, at their match and at each change of their status, by part of a batch. */
import { marketHead } from '../../../db/feed-schema.ts'
import { marketShard } from '../../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { FILL_TABLES, fillsOfMarket } from '../../fills/query.ts'
import { publicPartsView } from '../../fills/view.ts'
import type { Channel } from '../channel.ts'

/** Fills of a snapshot, newest first. */
export const TRADES = 100

export function tradesChannel(spec: MarketSpec): Channel {
  const { marketId, symbol } = spec
  const head = { market_id: marketId, symbol }
  return {
    head: marketHead(marketId, 'trades'),
    scope: { tables: FILL_TABLES, shard: marketShard(marketId) },
    isConflatable: false,
    pacing: 'outside batches',
    async snapshot(tx) {
      const rows = await fillsOfMarket(tx, marketId, { limit: TRADES, after: null, from: null, to: null })
      return { ...head, removed: [], parts: publicPartsView(spec, rows.slice(0, TRADES), () => false) }
    },
    update([row]) {
      const { fills = [], removedParts = [] } = row?.changes ?? {}
      // Absent in a row that an earlier version has stored.
      const parts = publicPartsView(spec, fills, ({ is_known = false }) => is_known)
      return { ...head, removed: removedParts, parts }
    },
  }
}

/** Public reads of auctions. */
import { marketShard } from '../../domain/journal/journal-row.ts'
import { markImmutable } from '../http/caching.ts'
import type { App } from '../http/types.ts'
import type { ReadPorts } from '../orders/own-orders.ts'
import { decodeCursor, invalidCursor, pageOf } from '../wire/cursor.ts'
import { timeRange } from '../wire/times.ts'
import { BATCH_TABLES, batchesOfMarket } from './query.ts'
import { Auctions, AuctionsQuery } from './schema.ts'
import { auctionView } from './view.ts'

/** A cursor names the last auction of its page and its market. */
function lastBatch(marketId: number, text: string | undefined): number | null {
  const cursor = decodeCursor('auctions', text)
  if (cursor !== null && cursor.id !== String(marketId)) throw invalidCursor(text as string)
  return cursor?.at ?? null
}

export function auctionRoutes(app: App, { markets, readAfter }: ReadPorts): void {
  app.get(
    '/v0/auctions',
    {
      config: { cached: true, errors: ['MARKET_NOT_FOUND'] },
      schema: {
        tags: ['markets'],
        summary: 'List the auctions of a market, newest first',
        description:
          'One auction per batch, with what decided its price. Auctions that matched nothing have no batch and are not listed.',
        operationId: 'listAuctions',
        querystring: AuctionsQuery,
        response: { 200: Auctions },
      },
    },
    async (request, reply) => {
      const { market_id: marketId, limit = 100, cursor, from, to } = request.query
      const spec = await markets.byId(marketId)
      const times = timeRange({ from, to })
      const filter = { limit, before: lastBatch(marketId, cursor), ...times }
      const scope = { tables: BATCH_TABLES, shard: marketShard(marketId) }
      const rows = await readAfter.read(request, scope, (db) => batchesOfMarket(db, marketId, filter))
      const { page, next_cursor } = pageOf('auctions', rows, limit, ({ batch_id, market_id }) => ({
        at: batch_id,
        id: String(market_id),
      }))
      if (filter.before !== null && page.every(({ is_final }) => is_final)) markImmutable(reply)
      return { auctions: page.map((row) => auctionView(spec, row)), next_cursor }
    },
  )
}

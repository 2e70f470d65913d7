/** Public reads of order books. */
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { ShareAnswer } from '../http/shared-answers.ts'
import type { App } from '../http/types.ts'
import type { MarketDirectory } from '../markets/market-directory.ts'
import { MarketIdParams } from '../markets/schema.ts'
import type { ReadAfter, Reading } from '../read-after/read-after.ts'
import { bookLevels, LEVEL_TABLES } from './query.ts'
import { Book, BookBySymbol, BookBySymbolQuery, BookQuery } from './schema.ts'
import { levelView } from './view.ts'

export interface OrderBookPorts {
  readonly markets: MarketDirectory
  readonly readAfter: ReadAfter
  readonly share: ShareAnswer
}

const tags = ['markets']
const MAX_DEPTH = 1000

export function orderBookRoutes(app: App, { markets, readAfter, share }: OrderBookPorts): void {
  const read = async (
    spec: MarketSpec,
    reading: Reading & { readonly query: { readonly depth?: number } },
  ) => {
    const depth = reading.query.depth ?? MAX_DEPTH
    const scope = { tables: LEVEL_TABLES, shard: marketShard(spec.marketId) }
    const rows = await readAfter.read(reading, scope, (db) => bookLevels(db, spec.marketId, depth))
    return {
      market_id: spec.marketId,
      symbol: spec.symbol,
      shard_seq: String(rows.seq),
      batch_id: rows.batch,
      long: rows.long.map((row) => levelView(spec, row)),
      short: rows.short.map((row) => levelView(spec, row)),
    }
  }
  app.get(
    '/v0/orderbook/by-market/:market_id',
    {
      schema: {
        tags,
        summary: 'Get the order book of a market',
        operationId: 'getOrderbook',
        params: MarketIdParams,
        querystring: BookQuery,
        response: { 200: Book },
      },
    },
    (request, reply) =>
      share(request, reply, async () => {
        const spec = await markets.byId(request.params.market_id)
        const { long: long_levels, short: short_levels, ...book } = await read(spec, request)
        return { ...book, long_levels, short_levels }
      }),
  )
  app.get(
    '/v0/orderbook',
    {
      config: { errors: ['MARKET_NOT_FOUND'] },
      schema: {
        tags,
        summary: 'Get the order book of a market by its symbol',
        operationId: 'getOrderbookBySymbol',
        querystring: BookBySymbolQuery,
        response: { 200: BookBySymbol },
      },
    },
    (request, reply) =>
      share(request, reply, async () => {
        const spec = await markets.bySymbol(request.query.symbol)
        const { long: bids, short: asks, ...book } = await read(spec, request)
        return { ...book, bids, asks }
      }),
  )
}

/** Public reads of candles. */
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { Clock } from '../../service/clock.ts'
import { markImmutable } from '../http/caching.ts'
import type { App } from '../http/types.ts'
import { MarketIdParams } from '../markets/schema.ts'
import type { ReadPorts } from '../orders/own-orders.ts'
import { CANDLE_TABLES, candlePage } from './query.ts'
import { cursorAfter, rangeOf } from './range.ts'
import { Candles, CandlesQuery } from './schema.ts'
import { candleView } from './view.ts'

export interface CandlePorts extends ReadPorts {
  readonly clock: Clock
}

export function candleRoutes(app: App, { markets, readAfter, clock }: CandlePorts): void {
  app.get(
    '/v0/markets/:market_id/candlesticks',
    {
      config: { cached: true },
      schema: {
        tags: ['markets'],
        summary: 'List the candles of a market, newest first',
        description:
          'Every interval from the first price to the end of the range is listed. One without a price repeats the close before it (`is_gap`). ' +
          'A voided batch leaves its candle, so a candle can change until it is final (`is_final`).',
        operationId: 'listCandles',
        params: MarketIdParams,
        querystring: CandlesQuery,
        response: { 200: Candles },
      },
    },
    async (request, reply) => {
      const { market_id: id } = request.params
      const { interval = '1m', price_type: priceType = 'last' } = request.query
      const spec = await markets.byId(id)
      const list = { list: 'candles', id: `${id}-${interval}-${priceType}`, interval } as const
      const { isBounded, ...range } = rangeOf(list, request.query, clock.now())
      const scope = { tables: CANDLE_TABLES, shard: marketShard(id) }
      const { candles, hasMore, horizon } = await readAfter.read(request, scope, (db) =>
        candlePage(db, spec, { ...range, priceType }),
      )
      if (isBounded && range.to <= horizon) markImmutable(reply)
      return {
        ...{ market_id: id, symbol: spec.symbol, interval, price_type: priceType },
        candles: candles.map((candle) => candleView(spec, candle, { interval, horizon })),
        next_cursor: hasMore ? cursorAfter(list, candles.at(-1)) : null,
      }
    },
  )
}

/** Public reads of candles. */
import { marketShard } from '../../domain/journal/journal-row.ts'
import {
  INTERVALS,
  type Interval,
  intervalStart,
  nextIntervalStart,
} from '../../domain/market-data/interval.ts'
import { type Millis, minOf } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import { markImmutable } from '../http/caching.ts'
import type { App } from '../http/types.ts'
import { MarketIdParams } from '../markets/schema.ts'
import type { ReadPorts } from '../orders/own-orders.ts'
import { type Cursor, decodeCursor, encodeCursor, invalidCursor } from '../wire/cursor.ts'
import { parseTime } from '../wire/times.ts'
import { CANDLE_TABLES, candlePage, type PriceType } from './query.ts'
import { Candles, CandlesQuery } from './schema.ts'
import { candleView } from './view.ts'

export interface CandlePorts extends ReadPorts {
  readonly clock: Clock
}

/** A cursor names the first candle of its page, its market, interval and price. */
const cursorId = (marketId: number, interval: Interval, priceType: PriceType): string =>
  `${marketId}-${interval}-${priceType}`

function startOfPage(text: string | undefined, id: string): Cursor['at'] | null {
  const cursor = decodeCursor('candles', text)
  if (cursor !== null && cursor.id !== id) throw invalidCursor(text as string)
  return cursor?.at ?? null
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
      const { interval = '1m', price_type: priceType = 'last', limit = 100, cursor, from, to } = request.query
      const spec = await markets.byId(id)
      const listId = cursorId(id, interval, priceType)
      const before = startOfPage(cursor, listId) ?? parseTime('to', to)
      const now = clock.now()
      const running = (intervalStart(interval, now) + INTERVALS[interval]) as Millis
      const first = parseTime('from', from)
      const range = {
        ...{ interval, priceType, limit },
        from: first === null ? null : nextIntervalStart(interval, first),
        to: before === null ? running : minOf(nextIntervalStart(interval, before), running),
      }
      const scope = { tables: CANDLE_TABLES, shard: marketShard(id) }
      const { candles, hasMore, horizon } = await readAfter.read(request, scope, (db) =>
        candlePage(db, spec, range),
      )
      if (before !== null && range.to <= horizon) markImmutable(reply)
      const last = candles.at(-1)
      return {
        ...{ market_id: id, symbol: spec.symbol, interval, price_type: priceType },
        candles: candles.map((candle) => candleView(spec, candle, { interval, horizon })),
        next_cursor:
          hasMore && last !== undefined ? encodeCursor('candles', { at: last.start, id: listId }) : null,
      }
    },
  )
}

/** `market.<id>.candles.<interval>`: the newest candles of the clearing prices. */
import { marketHead } from '../../../db/feed-schema.ts'
import { marketShard } from '../../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { INTERVALS, type Interval, intervalStart } from '../../../domain/market-data/interval.ts'
import type { Millis } from '../../../domain/units.ts'
import type { Clock } from '../../../service/clock.ts'
import { CANDLE_TABLES, candlePage } from '../../candles/query.ts'
import { candleView } from '../../candles/view.ts'
import type { Channel } from '../channel.ts'

/** The candle that is open, and those before it that the voiding of a batch can still change. */
export const CANDLES = 3

export const candlesChannel = (spec: MarketSpec, interval: Interval, clock: Clock): Channel => ({
  head: marketHead(spec.marketId, 'candles'),
  scope: { tables: CANDLE_TABLES, shard: marketShard(spec.marketId) },
  isConflatable: true,
  pacing: 'none',
  async snapshot(tx) {
    const to = (intervalStart(interval, clock.now()) + INTERVALS[interval]) as Millis
    const range = { interval, priceType: 'last', from: null, to, limit: CANDLES } as const
    const { candles, horizon } = await candlePage(tx, spec, range)
    const views = candles.map((candle) => candleView(spec, candle, { interval, horizon }))
    return { market_id: spec.marketId, symbol: spec.symbol, interval, price_type: 'last', candles: views }
  },
  update: null,
})

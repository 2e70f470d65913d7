/** Candles of a market: a first page over REST, then the feed, or the live price for mark and oracle. */
import type { TopicMessage } from '../../client/live/messages.ts'
import type { Candle, CandleInterval, PriceType } from '../../client/market-history.ts'
import { plain } from '../base/numbers.ts'
import { feed, marketData } from '../feed/exchange.ts'
import { prices } from '../feed/markets.ts'

export interface Bar {
  /** Unix seconds. */
  readonly time: number
  readonly open: number
  readonly high: number
  readonly low: number
  readonly close: number
  readonly volume: number
}

export interface ChartQuery {
  readonly marketId: number
  readonly interval: CandleInterval
  readonly priceType: PriceType
}

const PAGE = 500

const barOf = (candle: Candle): Bar => ({
  time: Date.parse(candle.start) / 1000,
  open: plain(candle.open_e18_raw),
  high: plain(candle.high_e18_raw),
  low: plain(candle.low_e18_raw),
  close: plain(candle.close_e18_raw),
  volume: plain(candle.volume_e18_raw),
})

/** Oldest first. */
export async function firstBars({ marketId, interval, priceType }: ChartQuery): Promise<Bar[]> {
  const { candles } = await marketData.candlePage(marketId, { interval, priceType, limit: PAGE })
  return candles.toReversed().map(barOf)
}

export const SECONDS: Readonly<Record<string, number>> = {
  '1m': 60,
  '5m': 300,
  '15m': 900,
  '1h': 3600,
  '4h': 14_400,
  '1d': 86_400,
}

function followPrice(
  { marketId, interval, priceType }: ChartQuery,
  first: Bar | undefined,
  onBar: (bar: Bar) => void,
): () => void {
  const length = SECONDS[interval] ?? 60
  let current = first
  return prices.subscribe((all) => {
    const live = all.get(marketId)
    const raw = priceType === 'mark' ? live?.mark_price_e18_raw : live?.oracle_price_e18_raw
    if (raw == null) return
    const price = plain(raw)
    const time = Math.floor(Date.now() / 1000 / length) * length
    if (current !== undefined && time < current.time) return
    current =
      current?.time === time
        ? { ...current, high: Math.max(current.high, price), low: Math.min(current.low, price), close: price }
        : { time, open: current?.close ?? price, high: price, low: price, close: price, volume: 0 }
    onBar(current)
  })
}

/** Calls `onBar` with each change of the newest bars, oldest first. Returns the function that ends it. */
export function followBars(query: ChartQuery, first: Bar | undefined, onBar: (bar: Bar) => void): () => void {
  if (query.priceType !== 'last') return followPrice(query, first, onBar)
  let newest = first?.time ?? 0
  return feed.subscribe(`market.${query.marketId}.candles.${query.interval}`, (message) => {
    const { candles } = (message as TopicMessage<{ readonly candles: readonly Candle[] }>).data
    for (const bar of candles.map(barOf).sort((a, b) => a.time - b.time)) {
      // A chart accepts only its last bar and later bars.
      if (bar.time < newest) continue
      newest = bar.time
      onBar(bar)
    }
  })
}

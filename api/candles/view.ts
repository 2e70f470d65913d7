/** Converts candles to their JSON form. */
import { type MarketSpec, quantityOf, tickStepValue } from '../../domain/market/market.ts'
import type { ShownCandle } from '../../domain/market-data/candle.ts'
import { INTERVALS, type Interval } from '../../domain/market-data/interval.ts'
import type { Steps } from '../../domain/units.ts'
import { amount, isoTime } from '../wire/amounts.ts'
import type { Candle } from './schema.ts'

export const candleView = (
  spec: MarketSpec,
  candle: ShownCandle,
  { interval, horizon }: { readonly interval: Interval; readonly horizon: number },
): Candle => ({
  start: isoTime(candle.start),
  ...amount('open', candle.open),
  ...amount('high', candle.high),
  ...amount('low', candle.low),
  ...amount('close', candle.close),
  ...amount('volume', quantityOf(spec, candle.steps as Steps)),
  ...amount('notional', candle.turnover * tickStepValue(spec)),
  trades: candle.auctions,
  fills: candle.fills,
  is_gap: candle.isGap,
  is_final: candle.start + INTERVALS[interval] <= horizon,
})

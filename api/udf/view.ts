/** Converts markets and candles to the forms of the UDF adapter. */
import { type MarketSpec, quantityOf } from '../../domain/market/market.ts'
import type { ShownCandle } from '../../domain/market-data/candle.ts'
import type { Steps } from '../../domain/units.ts'
import { decimalText, toNumber } from '../wire/amounts.ts'
import { EXCHANGE, LISTED_RESOLUTIONS, type UdfHistory, type UdfSymbol } from './schema.ts'

/** Number of decimals of an amount, and the whole number that its digits make. */
function digitsOf(amount: bigint): { readonly decimals: number; readonly digits: number } {
  const text = decimalText(amount)
  const [, fraction = ''] = text.split('.')
  return { decimals: fraction.length, digits: Number(text.replace('.', '')) }
}

export const describe = ({ symbol }: MarketSpec): string => `${symbol} on Clearbatch`

export function symbolView(spec: MarketSpec): UdfSymbol {
  const tick = digitsOf(spec.tick)
  return {
    name: spec.symbol,
    ticker: spec.symbol,
    description: describe(spec),
    type: spec.kind,
    exchange: EXCHANGE,
    listed_exchange: EXCHANGE,
    timezone: 'Etc/UTC',
    session: '24x7',
    format: 'price',
    minmov: tick.digits,
    pricescale: 10 ** tick.decimals,
    volume_precision: digitsOf(spec.step).decimals,
    has_intraday: true,
    has_daily: true,
    has_weekly_and_monthly: true,
    supported_resolutions: LISTED_RESOLUTIONS,
    data_status: 'streaming',
  }
}

/** Accepts candles in any order. */
export function barsView(spec: MarketSpec, candles: readonly ShownCandle[]): UdfHistory {
  const bars = [...candles].sort((a, b) => a.start - b.start)
  return {
    s: 'ok',
    t: bars.map(({ start }) => start / 1000),
    o: bars.map(({ open }) => toNumber(open)),
    h: bars.map(({ high }) => toNumber(high)),
    l: bars.map(({ low }) => toNumber(low)),
    c: bars.map(({ close }) => toNumber(close)),
    v: bars.map(({ steps }) => toNumber(quantityOf(spec, steps as Steps))),
  }
}

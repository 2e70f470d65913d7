/** Converts statistics of markets to their JSON forms. */
import { toMarketTerms } from '../../db/terms.ts'
import type { TradingCalendars } from '../../db/trading-calendars.ts'
import { termsAt } from '../../domain/market/in-force.ts'
import { type MarketSpec, priceOf, quantityOf, tickStepValue } from '../../domain/market/market.ts'
import { divFloor, type Millis, mulDivDown, ONE, type Steps, type Ticks } from '../../domain/units.ts'
import { fundingView } from '../markets/funding.ts'
import { amount, isoTime, maybeAmount } from '../wire/amounts.ts'
import { type DayColumns, dayStart, type StatsRow, type TickerRow } from './query.ts'
import type { MarketStats, Ticker } from './schema.ts'

const price = (spec: MarketSpec, ticks: number | null): bigint | null =>
  ticks === null ? null : priceOf(spec, ticks as Ticks)

function dayView(spec: MarketSpec, row: DayColumns, now: Millis) {
  const [last, open] = [price(spec, row.last), price(spec, row.open)]
  const change = last === null || open === null ? null : last - open
  return {
    market_id: row.market_id,
    symbol: spec.symbol,
    type: spec.kind,
    mode: termsAt(spec, toMarketTerms(row, spec), now).mode,
    since: isoTime(dayStart(now)),
    ...maybeAmount('last_price', last),
    ...maybeAmount('open_24h', open),
    ...maybeAmount('high_24h', price(spec, row.high)),
    ...maybeAmount('low_24h', price(spec, row.low)),
    ...maybeAmount('change_24h', change),
    ...maybeAmount('change_fraction_24h', change === null ? null : divFloor(change * ONE, open as bigint)),
    ...amount('volume_24h', quantityOf(spec, row.steps as Steps)),
    ...amount('notional_24h', row.turnover * tickStepValue(spec)),
    trades_24h: row.auctions,
    fills_24h: row.fills,
    ...maybeAmount('mark_price', row.mark_price ?? row.oracle_price),
    ...maybeAmount('oracle_price', row.oracle_price),
  }
}

export function statsView(
  spec: MarketSpec,
  row: StatsRow,
  calendars: TradingCalendars,
  now: Millis,
): MarketStats {
  const { mode, spec: current } = termsAt(spec, toMarketTerms(row, spec), now)
  const { funding } = fundingView(current, row, row.calendar && calendars[row.calendar], { mode, now })
  const openInterest = quantityOf(spec, row.open_steps as Steps)
  const oracle = row.oracle_price
  return {
    ...dayView(spec, row, now),
    ...amount('open_interest', openInterest),
    ...maybeAmount('open_interest_notional', oracle === null ? null : mulDivDown(openInterest, oracle, ONE)),
    funding_rate: funding?.funding_rate ?? null,
    funding_rate_e18_raw: funding?.funding_rate_e18_raw ?? null,
    predicted_funding_rate: funding?.predicted_rate ?? null,
    predicted_funding_rate_e18_raw: funding?.predicted_rate_e18_raw ?? null,
    next_funding_at: funding?.next_update_at ?? null,
  }
}

export function tickerView(spec: MarketSpec, row: TickerRow, now: Millis): Ticker {
  const quantity = (steps: number | undefined) =>
    steps === undefined ? null : quantityOf(spec, steps as Steps)
  return {
    ...dayView(spec, row, now),
    ...maybeAmount('bid_price', price(spec, row.bid?.price ?? null)),
    ...maybeAmount('bid_quantity', quantity(row.bid?.quantity)),
    ...maybeAmount('ask_price', price(spec, row.ask?.price ?? null)),
    ...maybeAmount('ask_quantity', quantity(row.ask?.quantity)),
  }
}

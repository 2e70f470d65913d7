/**
 * Requests and answers of the UDF adapter. Their names, and prices as plain numbers, are those of TradingView's Universal Data Feed: amounts
 * therefore do not appear twice, and times are in Unix seconds.
 */
import Type, { type Static } from 'typebox'
import type { Interval } from '../../domain/market-data/interval.ts'
import { MARKET_KINDS } from '../markets/schema.ts'
import { closed, countInput, words } from '../wire/schema.ts'

/** The interval of each resolution; without a unit it counts minutes. */
export const RESOLUTIONS: Readonly<Record<string, Interval>> = {
  ...{ '1': '1m', '3': '3m', '5': '5m', '15': '15m', '30': '30m', '60': '1h', '120': '2h' },
  ...{ '240': '4h', '480': '8h', '720': '12h', '1D': '1d', '1W': '1w', D: '1d', W: '1w' },
}
/** Without the short names of a day and a week. */
export const LISTED_RESOLUTIONS = Object.keys(RESOLUTIONS).filter((name) => /^\d/.test(name))

export const EXCHANGE = 'CLEARBATCH'
/** Most bars of one answer. */
export const MAX_BARS = 2000

const Seconds = (description: string) => Type.Integer({ minimum: 0, maximum: 9_999_999_999, description })
const SymbolName = Type.String({
  minLength: 1,
  maxLength: 64,
  description: `Symbol of the market, with or without \`${EXCHANGE}:\` before it.`,
})

export const UdfConfig = Type.Object({
  supports_search: Type.Boolean(),
  supports_group_request: Type.Boolean(),
  supports_marks: Type.Boolean(),
  supports_timescale_marks: Type.Boolean(),
  supports_time: Type.Boolean(),
  supported_resolutions: Type.Array(Type.String()),
  exchanges: Type.Array(Type.Object({ value: Type.String(), name: Type.String(), desc: Type.String() })),
  symbols_types: Type.Array(Type.Object({ value: Type.String(), name: Type.String() })),
})
export type UdfConfig = Static<typeof UdfConfig>

export const SymbolQuery = closed({ symbol: SymbolName })
export const UdfSymbol = Type.Object({
  s: Type.Optional(Type.String({ description: '`error` if the symbol is unknown; absent otherwise.' })),
  errmsg: Type.Optional(Type.String({ description: '`unknown_symbol`.' })),
  name: Type.Optional(Type.String()),
  ticker: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  type: Type.Optional(words(MARKET_KINDS, 'perpetual, future or binary_future.')),
  exchange: Type.Optional(Type.String()),
  listed_exchange: Type.Optional(Type.String()),
  timezone: Type.Optional(Type.String()),
  session: Type.Optional(Type.String({ description: 'Auctions run around the clock.' })),
  format: Type.Optional(Type.String()),
  minmov: Type.Optional(Type.Integer({ description: 'A tick is `minmov` / `pricescale`.' })),
  pricescale: Type.Optional(Type.Integer()),
  volume_precision: Type.Optional(Type.Integer({ description: 'Decimals of the quantity step.' })),
  has_intraday: Type.Optional(Type.Boolean()),
  has_daily: Type.Optional(Type.Boolean()),
  has_weekly_and_monthly: Type.Optional(Type.Boolean()),
  supported_resolutions: Type.Optional(Type.Array(Type.String())),
  data_status: Type.Optional(Type.String()),
})
export type UdfSymbol = Static<typeof UdfSymbol>

export const SearchQuery = closed({
  query: Type.Optional(Type.String({ maxLength: 64, description: 'Part of a symbol, in any case.' })),
  type: Type.Optional(Type.String({ description: 'A type of `config`; empty: all.' })),
  exchange: Type.Optional(Type.String({ description: 'An exchange of `config`; empty: all.' })),
  limit: Type.Optional(countInput(1000, 30, 'Most symbols.')),
})
export const UdfMatches = Type.Array(
  Type.Object({
    symbol: Type.String(),
    full_name: Type.String(),
    description: Type.String(),
    exchange: Type.String(),
    ticker: Type.String(),
    type: words(MARKET_KINDS, 'perpetual, future or binary_future.'),
  }),
)

export const HistoryQuery = closed({
  symbol: SymbolName,
  resolution: words(Object.keys(RESOLUTIONS), 'Length of a bar: minutes, or days and weeks.'),
  from: Type.Optional(Seconds('Time of the first bar, inclusive; ignored with `countback`.')),
  to: Seconds('Time before which the last bar starts, exclusive.'),
  countback: Type.Optional(Type.Integer({ minimum: 1, description: 'Number of bars before `to`.' })),
})
const numbers = (description: string) => Type.Optional(Type.Array(Type.Number(), { description }))
export const UdfHistory = Type.Object({
  s: words(['ok', 'no_data', 'error'], 'ok; no_data: no bar in the range; error: see errmsg.'),
  errmsg: Type.Optional(Type.String()),
  nextTime: Type.Optional(
    Type.Integer({ description: 'With no_data: time of the newest bar before the range, if there is one.' }),
  ),
  t: numbers('Start of each bar in Unix seconds, ascending.'),
  o: numbers('First clearing prices.'),
  h: numbers('Highest clearing prices.'),
  l: numbers('Lowest clearing prices.'),
  c: numbers('Last clearing prices; of a bar without an auction, that of the bar before.'),
  v: numbers('Matched quantities, counted once for both sides.'),
})
export type UdfHistory = Static<typeof UdfHistory>

/** The adapter for TradingView's charts: the candles of clearing prices in the form of the Universal Data Feed (UDF). */

import Type from 'typebox'
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import {
  INTERVALS,
  type Interval,
  intervalStart,
  nextIntervalStart,
} from '../../domain/market-data/interval.ts'
import { type Millis, minOf } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import { CANDLE_TABLES, type CandleRange, candlePage } from '../candles/query.ts'
import { markImmutable } from '../http/caching.ts'
import type { App } from '../http/types.ts'
import { MARKET_KINDS } from '../markets/schema.ts'
import type { ReadPorts } from '../orders/own-orders.ts'
import {
  EXCHANGE,
  HistoryQuery,
  LISTED_RESOLUTIONS,
  MAX_BARS,
  RESOLUTIONS,
  SearchQuery,
  SymbolQuery,
  UdfConfig,
  UdfHistory,
  UdfMatches,
  UdfSymbol,
} from './schema.ts'
import { barsView, describe, symbolView } from './view.ts'

export interface UdfPorts extends ReadPorts {
  readonly clock: Clock
}

const tags = ['udf']

/** Its errors about symbols are answers of status 200 with `s: error`, as the form requires. */
export function udfRoutes(app: App, ports: UdfPorts): void {
  reference(app, ports)
  symbols(app, ports)
  history(app, ports)
}

function reference(app: App, { clock }: UdfPorts): void {
  app.get(
    '/v0/udf/config',
    {
      schema: {
        tags,
        summary: 'Get what the feed supports',
        operationId: 'udfConfig',
        response: { 200: UdfConfig },
      },
    },
    () => ({
      ...{ supports_search: true, supports_group_request: false, supports_marks: false },
      ...{ supports_timescale_marks: false, supports_time: true },
      supported_resolutions: LISTED_RESOLUTIONS,
      exchanges: [{ value: EXCHANGE, name: 'Clearbatch', desc: 'Clearbatch' }],
      symbols_types: MARKET_KINDS.map((value) => ({ value, name: value.replace('_', ' ') })),
    }),
  )
  app.get(
    '/v0/udf/time',
    {
      schema: {
        tags,
        summary: 'Get the server time in Unix seconds, as text',
        operationId: 'udfTime',
        response: { 200: { description: 'OK', content: { 'text/plain': { schema: Type.String() } } } },
      },
    },
    (_request, reply) => {
      reply.type('text/plain')
      return String(Math.floor(clock.now() / 1000))
    },
  )
}

/** The market of a symbol, or of `CLEARBATCH:<symbol>`; undefined if there is none. */
async function marketOf({ markets }: ReadPorts, text: string): Promise<MarketSpec | undefined> {
  const symbol = text.startsWith(`${EXCHANGE}:`) ? text.slice(EXCHANGE.length + 1) : text
  return (await markets.all()).find((spec) => spec.symbol === symbol)
}

const UNKNOWN_SYMBOL = { s: 'error', errmsg: 'unknown_symbol' } as const

function symbols(app: App, ports: UdfPorts): void {
  app.get(
    '/v0/udf/symbols',
    {
      schema: {
        tags,
        summary: 'Get one symbol',
        operationId: 'udfSymbol',
        querystring: SymbolQuery,
        response: { 200: UdfSymbol },
      },
    },
    async ({ query }) => {
      const spec = await marketOf(ports, query.symbol)
      return spec === undefined ? UNKNOWN_SYMBOL : symbolView(spec)
    },
  )
  app.get(
    '/v0/udf/search',
    {
      schema: {
        tags,
        summary: 'Search symbols',
        operationId: 'udfSearch',
        querystring: SearchQuery,
        response: { 200: UdfMatches },
      },
    },
    async ({ query: { query = '', type = '', exchange = '', limit = 30 } }) => {
      const text = query.replace(`${EXCHANGE}:`, '').toUpperCase()
      const found = (await ports.markets.all()).filter(
        ({ symbol, kind }) =>
          symbol.toUpperCase().includes(text) &&
          (type === '' || kind === type) &&
          (exchange === '' || exchange === EXCHANGE),
      )
      return found.slice(0, limit).map((spec) => ({
        ...{ symbol: spec.symbol, full_name: `${EXCHANGE}:${spec.symbol}`, description: describe(spec) },
        ...{ exchange: EXCHANGE, ticker: spec.symbol, type: spec.kind },
      }))
    },
  )
}

interface BarsWanted {
  readonly from?: number
  readonly to: number
  readonly countback?: number
}

/** The range of a request, up to the running interval. `countback` outweighs `from`. */
function rangeOf(interval: Interval, { from, to, countback }: BarsWanted, now: Millis): CandleRange {
  const running = intervalStart(interval, now) + INTERVALS[interval]
  const isCounted = countback !== undefined || from === undefined
  return {
    ...{ interval, priceType: 'last', limit: minOf(countback ?? MAX_BARS, MAX_BARS) },
    from: isCounted ? null : nextIntervalStart(interval, from * 1000),
    to: minOf(nextIntervalStart(interval, to * 1000), running as Millis),
  }
}

function history(app: App, ports: UdfPorts): void {
  const { readAfter, clock } = ports
  app.get(
    '/v0/udf/history',
    {
      config: { cached: true, errors: ['READ_MODEL_FILLING'] },
      schema: {
        tags,
        summary: 'Get the bars of a symbol',
        description: `At most ${MAX_BARS}, the newest of the range. Bars without an auction repeat the close before them.`,
        operationId: 'udfHistory',
        querystring: HistoryQuery,
        response: { 200: UdfHistory },
      },
    },
    async (request, reply) => {
      const spec = await marketOf(ports, request.query.symbol)
      if (spec === undefined) return UNKNOWN_SYMBOL
      const interval = RESOLUTIONS[request.query.resolution] as Interval
      const range = rangeOf(interval, request.query, clock.now())
      const reading = { query: {}, caller: request.caller, ip: request.ip }
      const scope = { tables: CANDLE_TABLES, shard: marketShard(spec.marketId) }
      const { candles, horizon, newest } = await readAfter.read(reading, scope, async (db) => {
        const page = await candlePage(db, spec, range)
        const before = { ...range, from: null, to: minOf(range.to, range.from ?? range.to), limit: 1 }
        const [newest] = page.candles.length > 0 ? [] : (await candlePage(db, spec, before)).candles
        return { ...page, newest }
      })
      if (range.to <= horizon) markImmutable(reply)
      if (candles.length > 0) return barsView(spec, candles)
      return { s: 'no_data' as const, ...(newest !== undefined && { nextTime: newest.start / 1000 }) }
    },
  )
}

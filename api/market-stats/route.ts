/** Public reads of statistics and tickers: one answer for all markets. */
import Type from 'typebox'
import type { CalendarCache } from '../../db/trading-calendars.ts'
import type { Clock } from '../../service/clock.ts'
import type { ShareAnswer } from '../http/shared-answers.ts'
import type { App } from '../http/types.ts'
import { specOf } from '../markets/market-directory.ts'
import type { ReadPorts } from '../orders/own-orders.ts'
import { marketStats, STATS_TABLES, TICKER_TABLES, tickers } from './query.ts'
import { MarketStats, StatsQuery, Ticker } from './schema.ts'
import { statsView, tickerView } from './view.ts'

export interface MarketStatsPorts extends ReadPorts {
  readonly clock: Clock
  readonly calendars: CalendarCache
  readonly share: ShareAnswer
}

const tags = ['markets']

export function marketStatsRoutes(
  app: App,
  { markets, readAfter, clock, calendars, share }: MarketStatsPorts,
): void {
  app.get(
    '/v0/markets/stats',
    {
      schema: {
        tags,
        summary: 'Get the statistics of all markets',
        description:
          'Figures of the last 24 hours, open interest, prices and funding, by ascending market id.',
        operationId: 'listMarketStats',
        querystring: StatsQuery,
        response: { 200: Type.Array(MarketStats) },
      },
    },
    (request, reply) =>
      share(request, reply, async () => {
        const now = clock.now()
        const rows = await readAfter.read(request, { tables: STATS_TABLES }, (db) => marketStats(db, now))
        const [specs, current] = await Promise.all([markets.ofRows(rows), calendars.current()])
        return rows.map((row): MarketStats => statsView(specOf(specs, row), row, current, now))
      }),
  )
  app.get(
    '/v0/tickers',
    {
      schema: {
        tags,
        summary: 'Get the tickers of all markets',
        description: 'Best quotes, prices and figures of the last 24 hours, by ascending market id.',
        operationId: 'listTickers',
        querystring: StatsQuery,
        response: { 200: Type.Array(Ticker) },
      },
    },
    (request, reply) =>
      share(request, reply, async () => {
        const now = clock.now()
        const rows = await readAfter.read(request, { tables: TICKER_TABLES }, (db) => tickers(db, now))
        const specs = await markets.ofRows(rows)
        return rows.map((row): Ticker => tickerView(specOf(specs, row), row, now))
      }),
  )
}

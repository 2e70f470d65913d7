/** The public read of a market's feeds. */
import type { Db } from '../../db/client.ts'
import type { Feed } from '../../domain/prices/feed.ts'
import type { Clock } from '../../service/clock.ts'
import type { App } from '../http/types.ts'
import type { MarketDirectory } from '../markets/market-directory.ts'
import { sourcesView, statusView } from '../markets/oracle.ts'
import { MarketIdParams } from '../markets/schema.ts'
import { isoTime, maybeAmount, maybeTime } from '../wire/amounts.ts'
import { parseTime } from '../wire/times.ts'
import { feedsOfMarket, usedReport } from './query.ts'
import { Oracle, OracleQuery } from './schema.ts'

export interface OraclePorts {
  readonly db: Db
  readonly markets: MarketDirectory
  readonly clock: Clock
  readonly config: { readonly oracleMaxAgeMs: number }
}

interface ReportColumns {
  readonly feed: Feed
  readonly price: bigint | null
  readonly signatures: string | null
}

/** The value of a session feed is a time, 0 outside a session. */
const reportView = ({ feed, price, signatures }: ReportColumns) => ({
  feed,
  ...maybeAmount('price', feed === 'session' ? null : price),
  session_ends_at: maybeTime(feed === 'session' && price ? Number(price) : null),
  signatures,
})

export function oracleRoutes(app: App, { db, markets, clock, config }: OraclePorts): void {
  app.get(
    '/v0/markets/:market_id/oracle',
    {
      schema: {
        tags: ['markets'],
        summary: 'Get the price feeds of a market, and the evidence of a report',
        description:
          'Shows the write side: each feed with the readings behind its latest report, or the reason why there is none. Reports that something ' +
          'was decided on are kept.',
        operationId: 'getMarketOracle',
        params: MarketIdParams,
        querystring: OracleQuery,
        response: { 200: Oracle },
      },
    },
    async (request) => {
      const { marketId, symbol } = await markets.byId(request.params.market_id)
      const { feed = 'index', observed_at } = request.query
      const at = parseTime('observed_at', observed_at)
      const [feeds, used] = await Promise.all([
        feedsOfMarket(db, marketId),
        at === null ? undefined : usedReport(db, marketId, feed, at),
      ])
      const now = clock.now()
      return {
        market_id: marketId,
        symbol,
        feeds: feeds.map((row) => ({ ...reportView(row), ...statusView(row, now, config.oracleMaxAgeMs) })),
        evidence:
          used === undefined
            ? null
            : {
                ...reportView(used),
                observed_at: isoTime(used.observed_at),
                sources: sourcesView(used.feed, used.readings),
              },
      }
    },
  )
}

/** The public history of funding rates. */
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { App } from '../http/types.ts'
import { MarketIdParams } from '../markets/schema.ts'
import type { ReadPorts } from '../orders/own-orders.ts'
import { decodeCursor, invalidCursor, pageOf } from '../wire/cursor.ts'
import { timeRange } from '../wire/times.ts'
import { FUNDING_RATE_TABLES, type FundingRateFilter, fundingRates } from './query.ts'
import { FundingRates, FundingRatesQuery } from './schema.ts'
import { fundingRateView } from './view.ts'

/** A cursor names the last rate of its page, its market and its action. */
function lastRate(marketId: number, text: string | undefined): FundingRateFilter['after'] {
  const cursor = decodeCursor('funding-rates', text)
  if (cursor === null) return null
  const [market, action] = cursor.id.split('-').map(Number)
  if (market !== marketId || action === undefined || !Number.isSafeInteger(action)) {
    throw invalidCursor(text as string)
  }
  return { asOf: cursor.at, actionId: action }
}

export function fundingRoutes(app: App, { markets, readAfter }: ReadPorts): void {
  app.get(
    '/v0/markets/:market_id/funding-rates',
    {
      schema: {
        tags: ['markets'],
        summary: 'List the funding rates of a market, newest first',
        description:
          'One rate per mined update. A rate applies from `effective_at` until the next one, and at most until `valid_until`.',
        operationId: 'listFundingRates',
        params: MarketIdParams,
        querystring: FundingRatesQuery,
        response: { 200: FundingRates },
      },
    },
    async (request) => {
      const id = request.params.market_id
      const { limit = 100, cursor, from, to } = request.query
      const spec = await markets.byId(id)
      const filter = {
        ...{ limit, ...timeRange({ from, to }) },
        after: lastRate(id, cursor),
      }
      const scope = { tables: FUNDING_RATE_TABLES, shard: marketShard(id) }
      const rows = await readAfter.read(request, scope, (db) => fundingRates(db, id, filter))
      const { page, next_cursor } = pageOf(
        'funding-rates',
        rows,
        limit,
        ({ as_of, market_id, action_id }) => ({
          at: as_of,
          id: `${market_id}-${action_id}`,
        }),
      )
      return { funding_rates: page.map((row) => fundingRateView(spec, row)), next_cursor }
    },
  )
}

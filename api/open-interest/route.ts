/** The public series of a market's open interest. */
import { marketShard } from '../../domain/journal/journal-row.ts'
import { type MarketSpec, quantityOf } from '../../domain/market/market.ts'
import { mulDivDown, ONE, type Steps } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import { cursorAfter, rangeOf } from '../candles/range.ts'
import type { App } from '../http/types.ts'
import { MarketIdParams } from '../markets/schema.ts'
import type { ReadPorts } from '../orders/own-orders.ts'
import { amount, isoTime, maybeAmount } from '../wire/amounts.ts'
import { OPEN_INTEREST_TABLES, openInterestPage, type OpenInterestPoint as Point } from './query.ts'
import { OpenInterest, type OpenInterestPoint, OpenInterestQuery } from './schema.ts'

export interface OpenInterestPorts extends ReadPorts {
  readonly clock: Clock
}

export function openInterestRoutes(app: App, { markets, readAfter, clock }: OpenInterestPorts): void {
  app.get(
    '/v0/markets/:market_id/open-interest',
    {
      config: { cached: true },
      schema: {
        tags: ['markets'],
        summary: 'List the open interest of a market by interval, newest first',
        description: 'One point per interval since the first mined position.',
        operationId: 'listOpenInterest',
        params: MarketIdParams,
        querystring: OpenInterestQuery,
        response: { 200: OpenInterest },
      },
    },
    async (request) => {
      const { market_id: id } = request.params
      const { interval = '1h' } = request.query
      const spec = await markets.byId(id)
      const list = { list: 'open-interest', id: `${id}-${interval}`, interval } as const
      const range = rangeOf(list, request.query, clock.now())
      const scope = { tables: OPEN_INTEREST_TABLES, shard: marketShard(id) }
      const { points, hasMore } = await readAfter.read(request, scope, (db) =>
        openInterestPage(db, spec, range),
      )
      return {
        ...{ market_id: id, symbol: spec.symbol, interval },
        open_interest: points.map((point) => pointView(spec, point)),
        next_cursor: hasMore ? cursorAfter(list, points.at(-1)) : null,
      }
    },
  )
}

function pointView(spec: MarketSpec, { start, steps, oraclePrice }: Point): OpenInterestPoint {
  const quantity = quantityOf(spec, steps as Steps)
  const notional = oraclePrice === null ? null : mulDivDown(quantity, oraclePrice, ONE)
  return {
    start: isoTime(start),
    ...amount('open_interest', quantity),
    ...maybeAmount('open_interest_notional', notional),
  }
}

/** The public read of a market's risk. */
import type { Clock } from '../../service/clock.ts'
import type { App } from '../http/types.ts'
import type { MarketDirectory } from '../markets/market-directory.ts'
import { MarketIdParams } from '../markets/schema.ts'
import type { ReadAfter } from '../read-after/read-after.ts'
import { BookmarkQuery } from '../wire/schema.ts'
import { RISK_TABLES, riskOfMarket } from './query.ts'
import { MarketRisk } from './schema.ts'
import { riskView } from './view.ts'

export interface RiskPorts {
  readonly markets: MarketDirectory
  readonly readAfter: ReadAfter
  readonly clock: Clock
}

export function riskRoutes(app: App, { markets, readAfter, clock }: RiskPorts): void {
  app.get(
    '/v0/risk/:market_id',
    {
      schema: {
        tags: ['markets'],
        summary: 'Get the risk of a market',
        description:
          'Open interest, the backstop, deleveragings, deficits, and whether liquidations are paused.',
        operationId: 'getMarketRisk',
        params: MarketIdParams,
        querystring: BookmarkQuery,
        response: { 200: MarketRisk },
      },
    },
    async (request) => {
      const spec = await markets.byId(request.params.market_id)
      const row = await readAfter.read(request, { tables: RISK_TABLES }, (db) =>
        riskOfMarket(db, spec.marketId),
      )
      return riskView(spec, row, clock.now())
    },
  )
}

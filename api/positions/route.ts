/** Reads of the caller's positions. */
import { toRanks } from '../../db/deleveraging-ranks.ts'
import { toFunding } from '../../db/funding.ts'
import { toMarketTerms } from '../../db/terms.ts'
import { termsAt } from '../../domain/market/in-force.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { fundingIndexAt } from '../../domain/prices/funding-state.ts'
import type { Millis, Price } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { App } from '../http/types.ts'
import type { MarketDirectory } from '../markets/market-directory.ts'
import type { ReadAfter } from '../read-after/read-after.ts'
import { UserIdParams } from '../wire/schema.ts'
import { POSITION_TABLES, positionsOfUser } from './query.ts'
import { Positions, PositionsQuery } from './schema.ts'
import { type Prices, positionView } from './view.ts'

/** Older ranks are not shown: no keeper ranks the market. */
const RANK_AGE_MS = 60_000

export interface PositionPorts {
  readonly markets: MarketDirectory
  readonly readAfter: ReadAfter
  readonly clock: Clock
}

export function positionRoutes(app: App, { markets, readAfter, clock }: PositionPorts): void {
  app.get(
    '/v0/positions/by-user/:user_id',
    {
      config: { access: 'user' },
      schema: {
        tags: ['account'],
        summary: "List the caller's open positions",
        operationId: 'listPositions',
        params: UserIdParams,
        querystring: PositionsQuery,
        response: { 200: Positions },
      },
    },
    async (request) => {
      const { user_id: userId } = request.params
      const rows = await readAfter.read(request, { tables: POSITION_TABLES }, (db) =>
        positionsOfUser(db, userId, request.query.market_id),
      )
      const now = clock.now()
      const positions = rows.map(async (row) => {
        const spec = await markets.byId(row.market_id)
        return positionView(spec, row, pricesOf(spec, row, now))
      })
      return { positions: await Promise.all(positions) }
    },
  )
}

type Row = Awaited<ReturnType<typeof positionsOfUser>>[number]

/** Once the market has ended, its positions are worth its final price. From its close on none can be liquidated. */
function pricesOf(spec: MarketSpec, row: Row, now: Millis): Prices {
  const final = row.ended === null ? null : (BigInt(row.ended.price) as Price)
  const oracle = final ?? (row.oracle_price as Price | null)
  const { mode } = termsAt(spec, toMarketTerms(row, spec), now)
  const { ranks } = row
  return {
    oracle,
    mark: final ?? (row.mark_price as Price | null) ?? oracle,
    fundingIndex: fundingIndexAt(toFunding(row.funding), now),
    isLiquidated: mode !== 'settling' && mode !== 'settled',
    ranks: ranks === null || now - ranks.ranked_at > RANK_AGE_MS ? null : toRanks(ranks),
  }
}

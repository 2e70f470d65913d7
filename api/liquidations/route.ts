/** Reads of liquidations: public steps without accounts, and the caller's own steps. */
import { marketShard } from '../../domain/journal/journal-row.ts'
import { callerOf } from '../http/access.ts'
import type { App } from '../http/types.ts'
import { specOf } from '../markets/market-directory.ts'
import type { ReadPorts } from '../orders/own-orders.ts'
import { decodeCursor, pageOf } from '../wire/cursor.ts'
import { timeRange } from '../wire/times.ts'
import { LIQUIDATION_TABLES, minedLiquidations, STEP_TABLES, stepsOfUser } from './query.ts'
import { LiquidationSteps, LiquidationStepsQuery, Liquidations, LiquidationsQuery } from './schema.ts'
import { liquidationView, stepView } from './view.ts'

const cursorOf = ({ at, id }: { readonly at: number; readonly id: string }) => ({ at, id })

/** One market's rows come from one shard. */
const shardOf = (marketId: number | undefined) =>
  marketId === undefined ? {} : { shard: marketShard(marketId) }

export function liquidationRoutes(app: App, { markets, readAfter }: ReadPorts): void {
  app.get(
    '/v0/liquidations',
    {
      config: { errors: ['MARKET_NOT_FOUND'] },
      schema: {
        tags: ['markets'],
        summary: 'List liquidations, newest first',
        description:
          'Forced fills, inheritances by the backstop and deleveragings that are mined, without accounts.',
        operationId: 'listLiquidations',
        querystring: LiquidationsQuery,
        response: { 200: Liquidations },
      },
    },
    async (request) => {
      const { market_id: marketId, limit = 100, cursor, ...times } = request.query
      if (marketId !== undefined) await markets.byId(marketId)
      const filter = {
        ...{ marketId, limit, ...timeRange(times) },
        after: decodeCursor('liquidations', cursor),
      }
      const scope = { tables: LIQUIDATION_TABLES, ...shardOf(marketId) }
      const rows = await readAfter.read(request, scope, (db) => minedLiquidations(db, filter))
      const { page, next_cursor } = pageOf('liquidations', rows, limit, cursorOf)
      const specs = await markets.ofRows(page)
      return { liquidations: page.map((row) => liquidationView(specOf(specs, row), row)), next_cursor }
    },
  )
  app.get(
    '/v0/account/liquidations',
    {
      config: { access: 'user' },
      schema: {
        tags: ['account'],
        summary: "List the steps of the caller's liquidations, newest first",
        description:
          'Each step with the evidence on which it was decided, and the deleveragings in which the caller was a counterparty.',
        operationId: 'listLiquidationSteps',
        querystring: LiquidationStepsQuery,
        response: { 200: LiquidationSteps },
      },
    },
    async (request) => {
      const { market_id: marketId, limit = 100, cursor, ...times } = request.query
      const page = { marketId, limit, ...timeRange(times), after: decodeCursor('own-liquidations', cursor) }
      const scope = { tables: STEP_TABLES, ...shardOf(marketId) }
      const rows = await readAfter.read(request, scope, (db) =>
        stepsOfUser(db, callerOf(request).userId, page),
      )
      const { page: steps, next_cursor } = pageOf('own-liquidations', rows, limit, cursorOf)
      const specs = await markets.ofRows(steps)
      return { steps: steps.map((row) => stepView(specOf(specs, row), row)), next_cursor }
    },
  )
}

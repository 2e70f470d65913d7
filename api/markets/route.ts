/** Public reads of markets. */
import Type from 'typebox'
import type { CalendarCache } from '../../db/trading-calendars.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { Clock } from '../../service/clock.ts'
import { ApiError } from '../errors.ts'
import type { ShareAnswer } from '../http/shared-answers.ts'
import type { App } from '../http/types.ts'
import type { ReadAfter } from '../read-after/read-after.ts'
import { BookmarkQuery } from '../wire/schema.ts'
import type { MarketDirectory } from './market-directory.ts'
import { MARKET_TABLES, marketState, marketStates } from './query.ts'
import { Market, MarketIdParams, MarketsQuery } from './schema.ts'
import { marketView } from './view.ts'

export interface MarketPorts {
  readonly markets: MarketDirectory
  readonly readAfter: ReadAfter
  readonly share: ShareAnswer
  readonly calendars: CalendarCache
  readonly clock: Clock
  readonly config: { readonly oracleMaxAgeMs: number }
}

const tags = ['markets']

export function marketRoutes(
  app: App,
  { markets, readAfter, calendars, clock, config, share }: MarketPorts,
): void {
  const readTime = () => ({ now: clock.now(), oracleMaxAgeMs: config.oracleMaxAgeMs })
  app.get(
    '/v0/markets',
    {
      schema: {
        tags,
        summary: 'List markets',
        operationId: 'listMarkets',
        querystring: MarketsQuery,
        response: { 200: Type.Array(Market) },
      },
    },
    (request, reply) =>
      share(request, reply, async () => {
        const { type: kind, mode, symbol, limit = 100 } = request.query
        const states = await readAfter.read(request, { tables: MARKET_TABLES }, (db) =>
          marketStates(db, { kind, symbol }),
        )
        const current = await calendars.current()
        const time = readTime()
        const views = await Promise.all(
          states.map(async (state) => marketView(await markets.byId(state.market_id), state, current, time)),
        )
        return views.filter((view) => mode === undefined || view.mode === mode).slice(0, limit)
      }),
  )
  app.get(
    '/v0/markets/:market_id',
    {
      schema: {
        tags,
        summary: 'Get one market',
        operationId: 'getMarket',
        params: MarketIdParams,
        querystring: BookmarkQuery,
        response: { 200: Market },
      },
    },
    async (request) => {
      const id = request.params.market_id
      const spec = await markets.byId(id)
      const scope = { tables: MARKET_TABLES, shard: marketShard(id) }
      const state = await readAfter.read(request, scope, (db) => marketState(db, id))
      if (state === undefined) throw new ApiError('MARKET_NOT_FOUND', { field: 'market_id', received: id })
      return marketView(spec, state, await calendars.current(), readTime())
    },
  )
}

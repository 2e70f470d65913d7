/** The series of the caller's realized profits. */
import type { Clock } from '../../service/clock.ts'
import { cursorAfter, rangeOf } from '../candles/range.ts'
import { callerOf } from '../http/access.ts'
import type { App } from '../http/types.ts'
import type { ReadPorts } from '../orders/own-orders.ts'
import { amount, isoTime } from '../wire/amounts.ts'
import { PROFIT_TABLES, type ProfitRow, profitsOfUser } from './query.ts'
import { type ProfitPoint, Profits, ProfitsQuery } from './schema.ts'

export interface ProfitPorts extends ReadPorts {
  readonly clock: Clock
}

export function accountPnlRoutes(app: App, { readAfter, clock }: ProfitPorts): void {
  app.get(
    '/v0/account/pnl',
    {
      config: { access: 'user' },
      schema: {
        tags: ['account'],
        summary: "List the caller's realized profits by interval, newest first",
        description:
          'Sums of mined events. Profits that are not realized depend on prices; of open positions `GET /v0/positions/by-user/{user_id}` shows them.',
        operationId: 'listPnl',
        querystring: ProfitsQuery,
        response: { 200: Profits },
      },
    },
    async (request) => {
      const { interval = '1d', market_id: marketId, ...query } = request.query
      const list = { list: 'pnl', id: `${interval}-${marketId ?? 'all'}`, interval } as const
      const range = rangeOf(list, query, clock.now())
      const rows = await readAfter.read(request, { tables: PROFIT_TABLES }, (db) =>
        profitsOfUser(db, callerOf(request).userId, { ...range, marketId }),
      )
      const page = rows.slice(0, range.limit)
      const next_cursor = rows.length > page.length ? cursorAfter(list, page.at(-1)) : null
      return { interval, pnl: page.map(pointView), next_cursor }
    },
  )
}

const pointView = ({ start, realized_pnl, fees, funding }: ProfitRow): ProfitPoint => ({
  start: isoTime(start),
  ...amount('realized_pnl', realized_pnl),
  ...amount('fees', fees),
  ...amount('funding', funding),
  ...amount('net_pnl', realized_pnl - fees + funding),
})

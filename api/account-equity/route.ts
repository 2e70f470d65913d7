/** The series of the caller's equity. */
import { INTERVALS } from '../../domain/market-data/interval.ts'
import type { Millis } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import { cursorAfter, rangeOf } from '../candles/range.ts'
import { callerOf } from '../http/access.ts'
import type { App } from '../http/types.ts'
import type { ReadPorts } from '../orders/own-orders.ts'
import { amount, isoTime } from '../wire/amounts.ts'
import { EQUITY_TABLES, type EquityInterval } from './query.ts'
import { Equity, type EquityPoint, EquityQuery } from './schema.ts'
import { equityPage, equitySeries, type StartedPoint } from './series.ts'

export interface EquityPorts extends ReadPorts {
  readonly clock: Clock
}

const DESCRIPTION = `
In every interval the equity changes by \`deposits\` less \`withdrawals\`, plus \`realized_pnl\`, less \`fees\`, plus \`funding\`, plus the change of
\`unrealized_pnl\`. All amounts follow from mined events; a fork of the chain takes its events out of the intervals in which they were. A withdrawal counts at
its request; the share of it that pays a loss while it is pending is subtracted again. With \`market_id\` the points show the sums of that market
alone: they add up, over all markets and with deposits less withdrawals, to the points of the account.
`.trim()

export function accountEquityRoutes(app: App, { markets, readAfter, clock }: EquityPorts): void {
  app.get(
    '/v0/account/equity',
    {
      config: { access: 'user' },
      schema: {
        tags: ['account'],
        summary: "List the caller's equity by interval, newest first",
        description: DESCRIPTION,
        operationId: 'listEquity',
        querystring: EquityQuery,
        response: { 200: Equity },
      },
    },
    async (request) => {
      const { interval = '1d', market_id: marketId, ...query } = request.query
      const list = { list: 'equity', id: `${interval}-${marketId ?? 'all'}`, interval } as const
      const now = clock.now()
      const range = rangeOf(list, query, now)
      const account = { userId: callerOf(request).userId, marketId }
      const page = await readAfter.read(request, { tables: EQUITY_TABLES }, (db) =>
        equityPage(db, account, { ...range, interval, now }),
      )
      const specs = await markets.ofRows(page.positions)
      const points = equitySeries(page, specs).reverse()
      return {
        interval,
        equity: points.map((point) => pointView(point, interval, now)),
        next_cursor: page.hasMore ? cursorAfter(list, points.at(-1)) : null,
      }
    },
  )
}

const pointView = (point: StartedPoint, interval: EquityInterval, now: Millis): EquityPoint => ({
  start: isoTime(point.start),
  valued_at: isoTime(Math.min(point.start + INTERVALS[interval], now)),
  ...amount('equity', point.equity),
  ...amount('balance', point.balance),
  ...amount('unrealized_pnl', point.unrealizedPnl),
  ...amount('deposits', point.deposits),
  ...amount('withdrawals', point.withdrawals),
  ...amount('realized_pnl', point.realizedPnl),
  ...amount('fees', point.fees),
  ...amount('funding', point.funding),
})

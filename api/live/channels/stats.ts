/** `market.<id>.stats`: the figures of a market, as GET /v0/markets/stats shows them. */
import { marketHead } from '../../../db/feed-schema.ts'
import type { CalendarCache } from '../../../db/trading-calendars.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { Clock } from '../../../service/clock.ts'
import { marketStats, STATS_TABLES, type StatsRow } from '../../market-stats/query.ts'
import { statsView } from '../../market-stats/view.ts'
import type { Channel } from '../channel.ts'

export interface StatsPorts {
  readonly clock: Clock
  readonly calendars: CalendarCache
}

export const statsChannel = (spec: MarketSpec, { clock, calendars }: StatsPorts): Channel => ({
  head: marketHead(spec.marketId, 'stats'),
  scope: { tables: STATS_TABLES },
  isConflatable: true,
  pacing: 'none',
  async snapshot(tx) {
    const now = clock.now()
    const [row] = await marketStats(tx, now, spec.marketId)
    return statsView(spec, row as StatsRow, await calendars.current(), now)
  },
  update: null,
})

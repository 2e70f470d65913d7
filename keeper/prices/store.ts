/** The price publisher in Postgres. */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { checkFence } from '../../db/fence.ts'
import { loadFeedMarkets } from '../../db/markets.ts'
import {
  type FeedKey,
  loadFeedStates,
  loadOverrides,
  publishReports,
  recordAbsences,
} from '../../db/oracle-reports.ts'
import { pipelined, together } from '../../db/pipeline.ts'
import { loadCalendars } from '../../db/trading-calendars.ts'
import type { MarketId } from '../../domain/units.ts'
import { keyOf, type PriceStore } from './ports.ts'

export const createPriceStore = (db: Db): PriceStore => ({
  async markets() {
    const [rows, calendars] = [await loadFeedMarkets(db), await loadCalendars(db)]
    return new Map(
      rows.map(({ spec, calendar, ...rest }) => [
        spec.marketId,
        { spec, ...rest, calendar: calendar === null ? null : calendars[calendar] },
      ]),
    )
  },

  async states() {
    const states = await loadFeedStates(db)
    return new Map(states.map(({ last, reason, ...key }) => [keyOf(key), { last, reason }]))
  },

  publish: (fence, { reports, absences }) =>
    db.transaction().execute((opened) =>
      pipelined(opened, async (tx) => {
        // Not waiting for the disk: a crash of the database loses only reports that nothing was decided on, because the commit of a decision
        // writes everything before it.
        const [, , stored] = await together([
          sql`set local synchronous_commit = off`.execute(tx),
          checkFence(tx, fence),
          loadOverrides(tx),
        ])
        const overrides = new Map(stored.map(({ marketId, last }) => [marketId as MarketId, last]))
        const isOurs = ({ marketId, feed }: FeedKey): boolean =>
          feed !== 'index' || !overrides.has(marketId as MarketId)
        const [ownReports, ownAbsences] = [reports.filter(isOurs), absences.filter(isOurs)]
        if (ownReports.length > 0) await publishReports(tx, ownReports)
        if (ownAbsences.length > 0) await recordAbsences(tx, ownAbsences)
        return overrides
      }),
    ),
})

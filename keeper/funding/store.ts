/** The reads of the funding job in Postgres. */
import { type RawBuilder, sql } from 'kysely'
import { usedReportSql } from '../../db/actions.ts'
import type { Db } from '../../db/client.ts'
import { DATABASE_NOW } from '../../db/clock.ts'
import { fundingColumn, type StoredFunding, toFunding } from '../../db/funding.ts'
import { type StoredSession, sessionColumn, toSession } from '../../db/oracle-reports.ts'
import { averagesColumn, type StoredAverages, toAverages } from '../../db/price-averages.ts'
import type { ActionStatus } from '../../db/schema.ts'
import { TERMS_SQL, type TermsColumns, toMarketTerms } from '../../db/terms.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { LastUpdate } from '../../domain/prices/funding-plan.ts'
import type { Millis, Price } from '../../domain/units.ts'
import type { FundingSnapshot, FundingStore } from './ports.ts'

interface SnapshotRow extends TermsColumns {
  now: number
  report_price: bigint | null
  report_at: number | null
  signatures: string | null
  used_price: bigint | null
  used_at: number | null
  funding: StoredFunding
  averages: StoredAverages
  session: StoredSession
  last_as_of: number | null
  last_status: ActionStatus | null
}

const OUTCOMES: Readonly<Record<ActionStatus, LastUpdate['outcome']>> = {
  ...{ QUEUED: 'pending', SIGNED: 'pending', SUBMITTED: 'pending' },
  ...{ MINED: 'mined', REVERTED: 'dropped', VOIDED: 'dropped' },
}

const toSnapshot = (spec: MarketSpec, row: SnapshotRow): FundingSnapshot => ({
  now: row.now as Millis,
  terms: toMarketTerms(row, spec),
  report:
    row.report_price === null
      ? null
      : {
          ...{ price: row.report_price as Price, observedAt: row.report_at as Millis },
          signatures: row.signatures as `0x${string}`,
        },
  session: toSession(row.session),
  usedReport:
    row.used_price === null ? null : { price: row.used_price as Price, observedAt: row.used_at as Millis },
  funding: toFunding(row.funding),
  premium: toAverages(row.averages).premium,
  last:
    row.last_as_of === null
      ? null
      : { asOf: row.last_as_of as Millis, outcome: OUTCOMES[row.last_status as ActionStatus] },
})

/** `now`: the time of each snapshot; tests set it. */
export const createFundingStore = (
  db: Db,
  now: () => RawBuilder<number> = () => DATABASE_NOW,
): FundingStore => ({
  async snapshot(spec: MarketSpec) {
    const { rows } = await sql<SnapshotRow>`
      select ${now()} as now, ${sql.raw(TERMS_SQL)}, r.price as report_price, r.observed_at as report_at, r.signatures,
        used.used_price, used.used_at, ${sql.raw(fundingColumn('m.market_id'))} as funding,
        ${sql.raw(averagesColumn('m.market_id'))} as averages, ${sql.raw(sessionColumn('m.market_id'))} as session, last.as_of as last_as_of, last.status as last_status
      from markets m
      left join oracle_reports r on r.market_id = m.market_id and r.feed = 'index' and r.status <> 'halted'
      left join lateral (${sql.raw(usedReportSql('m.market_id'))}) used on true
      left join lateral (
        select as_of, status from actions
        where market_id = m.market_id and kind = 'update_funding' order by queue_no desc limit 1
      ) last on true
      where m.market_id = ${spec.marketId}
    `.execute(db)
    return toSnapshot(spec, rows[0] as SnapshotRow)
  },
})

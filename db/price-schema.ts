/** The tables of the price publisher. */
import type { Generated } from 'kysely'
import type { AbsenceReason, Feed, FeedStatus } from '../domain/prices/feed.ts'

/** A report with the readings of the sources behind it, as JSON. */
interface ReportColumns {
  price: bigint
  observed_at: number
  signatures: string
  readings: Generated<string>
}

/**
 * State and latest report of each feed; a halted feed's report must not be used. Report columns are null together
 * before the first. Written by: keeper, and by local tools as owner.
 */
export interface OracleReportsTable {
  market_id: number
  feed: Generated<Feed>
  price: bigint | null
  observed_at: number | null
  signatures: string | null
  received_at: number | null
  readings: Generated<string>
  status: Generated<FeedStatus>
  /** Null while the feed is live. */
  reason: AbsenceReason | null
  /** The time of the last change of the status. */
  since: Generated<number>
  /** The slot of the latest report in `recent_reports`. */
  slot: Generated<number>
}

/** The newest reports of each feed, overwritten in turn: at least as long as a report can be used. Written by: keeper. */
export interface RecentReportsTable extends ReportColumns {
  market_id: number
  feed: Feed
  slot: number
}

/** Every report that a batch, a trigger or a single action has used: the evidence. Written by: keeper, engine. */
export interface UsedReportsTable extends ReportColumns {
  market_id: number
  feed: Feed
}

export interface PriceTables {
  oracle_reports: OracleReportsTable
  recent_reports: RecentReportsTable
  used_reports: UsedReportsTable
}

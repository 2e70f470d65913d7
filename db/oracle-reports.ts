/**
 * Tables of the price publisher: `oracle_reports` (state and latest report of each feed), `recent_reports` (reports
 * before it), and `used_reports` (reports that decided something).
 */
import { sql } from 'kysely'
import type { SessionReport } from '../domain/actions/action.ts'
import type { JudgedReading } from '../domain/prices/aggregate.ts'
import { type AbsenceReason, type Feed, statusOf } from '../domain/prices/feed.ts'
import type { OracleReport } from '../domain/settlement/settlement.ts'
import type { Millis, Price } from '../domain/units.ts'
import type { Db, Tx } from './client.ts'
import { DATABASE_NOW } from './clock.ts'
import { toJson } from './json.ts'

export interface FeedKey {
  readonly marketId: number
  readonly feed: Feed
}

/** A new report of a feed. */
export interface FeedReport extends FeedKey {
  readonly report: OracleReport
  readonly readings: readonly JudgedReading[]
}

/** A feed that has no new report. */
export interface FeedAbsence extends FeedKey {
  readonly reason: AbsenceReason
  readonly readings: readonly JudgedReading[]
}

/** Reports that a feed's ring has: those of 64 s at two per second. No market accepts a report that is older than 60 s. */
const RECENT_REPORTS = 128

/** In one order, so that two writers never wait for each other in a circle. */
const inOrder = <Row extends FeedKey>(rows: readonly Row[]): Row[] =>
  [...rows].sort((a, b) => a.marketId - b.marketId || (a.feed < b.feed ? -1 : 1))

const feedColumns = (rows: readonly FeedKey[]) => ({
  markets: rows.map(({ marketId }) => marketId),
  feeds: rows.map(({ feed }) => feed),
})

const readingsOf = (rows: readonly { readonly readings: readonly JudgedReading[] }[]): string[] =>
  rows.map(({ readings }) => toJson(readings))

/**
 * Stores at most one latest report per feed, in one statement, and makes these feeds live. Drops a report that is not
 * newer than the stored one. Returns the feeds with a stored report.
 */
export async function publishReports(db: Db | Tx, reports: readonly FeedReport[]): Promise<FeedKey[]> {
  const rows = inOrder(reports)
  const { markets, feeds } = feedColumns(rows)
  const { rows: stored } = await sql<{ market_id: number; feed: Feed }>`
    with published as (
      insert into oracle_reports as o (market_id, feed, price, observed_at, signatures, readings, received_at, since)
      select r.*, t.now, t.now from (select ${DATABASE_NOW} as now offset 0) t cross join unnest(
        ${markets}::integer[], ${feeds}::text[], ${rows.map(({ report }) => report.price)}::numeric[],
        ${rows.map(({ report }) => report.observedAt)}::bigint[], ${rows.map(({ report }) => report.signatures)}::text[],
        ${readingsOf(rows)}::text[]
      ) r
      on conflict (market_id, feed) do update set
        price = excluded.price, observed_at = excluded.observed_at, signatures = excluded.signatures,
        readings = excluded.readings, received_at = excluded.received_at, status = 'live', reason = null,
        since = case when o.status = 'live' then o.since else excluded.since end, slot = (o.slot + 1) % ${RECENT_REPORTS}
      where o.observed_at is null or o.observed_at < excluded.observed_at
      returning market_id, feed, slot, price, observed_at, signatures, readings
    ), recent as (
      insert into recent_reports (market_id, feed, slot, price, observed_at, signatures, readings) select * from published
      on conflict (market_id, feed, slot) do update set
        price = excluded.price, observed_at = excluded.observed_at, signatures = excluded.signatures, readings = excluded.readings
    )
    select market_id, feed from published
  `.execute(db)
  return stored.map(({ market_id, feed }) => ({ marketId: market_id, feed }))
}

/**
 * Stores why feeds have no new report, at most one row each. Latest reports stay. Only a new report ends a halt,
 * because silent sources do not resolve a contradiction.
 */
export async function recordAbsences(db: Db | Tx, absences: readonly FeedAbsence[]): Promise<void> {
  const rows = inOrder(absences)
  const { markets, feeds } = feedColumns(rows)
  await sql`
    insert into oracle_reports as o (market_id, feed, status, reason, readings, since)
    select r.*, t.now from (select ${DATABASE_NOW} as now offset 0) t cross join unnest(
      ${markets}::integer[], ${feeds}::text[], ${rows.map(({ reason }) => statusOf(reason))}::text[],
      ${rows.map(({ reason }) => reason)}::text[], ${readingsOf(rows)}::text[]
    ) r
    on conflict (market_id, feed) do update set
      status = case when o.status = 'halted' then o.status else excluded.status end,
      reason = excluded.reason, readings = excluded.readings,
      since = case when o.status in ('halted', excluded.status) then o.since else excluded.since end
  `.execute(db)
}

/** The latest report of a feed; null if there is none, or if the feed is halted. It can be older than the market accepts. */
export async function latestReport(db: Db | Tx, { marketId, feed }: FeedKey): Promise<OracleReport | null> {
  const row = await db
    .selectFrom('oracle_reports')
    .select(['price', 'observed_at', 'signatures'])
    .where('market_id', '=', marketId)
    .where('feed', '=', feed)
    .where('status', '<>', 'halted')
    .executeTakeFirst()
  if (row === undefined || row.price === null) return null
  return {
    price: row.price as Price,
    observedAt: row.observed_at as Millis,
    signatures: row.signatures as `0x${string}`,
  }
}

/** A report of the session feed in one JSON value; null if there is none, or if the feed is halted. */
export type StoredSession = {
  readonly ends_at: number
  readonly observed_at: number
  readonly signatures: string
} | null

/** SQL of a market's latest `StoredSession`. `marketId`: an SQL expression. */
export const sessionColumn = (marketId: string): string => `
  (
    select json_build_object('ends_at', s.price, 'observed_at', s.observed_at, 'signatures', s.signatures)
    from oracle_reports s
    where s.market_id = ${marketId} and s.feed = 'session' and s.status <> 'halted' and s.price is not null
  )
`

export const toSession = (stored: StoredSession): SessionReport | null =>
  stored && {
    endsAt: stored.ends_at as Millis,
    observedAt: stored.observed_at as Millis,
    signatures: stored.signatures as `0x${string}`,
  }

/**
 * Keeps a report as evidence, with the readings behind it, in the transaction of the decision that uses it. A report that was not
 * published by the publisher has no readings.
 */
export async function keepReport(tx: Tx, { marketId, feed }: FeedKey, report: OracleReport): Promise<void> {
  await sql`
    insert into used_reports (market_id, feed, observed_at, price, signatures, readings)
    values (${marketId}, ${feed}, ${report.observedAt}, ${report.price}::numeric, ${report.signatures}, coalesce((
      select readings from recent_reports
      where market_id = ${marketId} and feed = ${feed} and observed_at = ${report.observedAt} limit 1
    ), '[]'))
    on conflict do nothing
  `.execute(tx)
}

// ---------------------------------------------------------------------- the publisher

export interface StoredFeedState extends FeedKey {
  readonly last: { readonly price: bigint; readonly observedAt: Millis } | null
  readonly reason: AbsenceReason | null
}

const lastOf = ({ price, observed_at }: { price: bigint | null; observed_at: number | null }) =>
  price === null || observed_at === null ? null : { price, observedAt: observed_at as Millis }

export async function loadFeedStates(db: Db): Promise<StoredFeedState[]> {
  const rows = await db
    .selectFrom('oracle_reports')
    .select(['market_id', 'feed', 'price', 'observed_at', 'reason'])
    .execute()
  return rows.map((row) => ({
    marketId: row.market_id,
    feed: row.feed,
    last: lastOf(row),
    reason: row.reason,
  }))
}

/** While a program owns this lease, it publishes the market's index instead of the keeper. */
export const indexLease = (marketId: number): string => `${INDEX_LEASE}${marketId}`
const INDEX_LEASE = 'oracle:'

/** The markets whose index another program publishes, with its latest report. */
export async function loadOverrides(
  db: Db | Tx,
): Promise<{ readonly marketId: number; readonly last: StoredFeedState['last'] }[]> {
  const { rows } = await sql<{ market_id: number; price: bigint | null; observed_at: number | null }>`
    select l.market_id, r.price, r.observed_at
    from (
      select substring(name from ${INDEX_LEASE.length + 1}::integer)::integer as market_id from leases
      where name like ${`${INDEX_LEASE}%`} and expires_at > ${DATABASE_NOW}
    ) l
    left join oracle_reports r on r.market_id = l.market_id and r.feed = 'index'
  `.execute(db)
  return rows.map((row) => ({ marketId: row.market_id, last: lastOf(row) }))
}

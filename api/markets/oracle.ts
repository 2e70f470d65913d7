/** The index feed of a market, as the answers on markets show it: its status, and the readings behind the latest report. */
import Type, { type Static } from 'typebox'
import { ABSENCE_REASONS, type AbsenceReason, type Feed, type FeedStatus } from '../../domain/prices/feed.ts'
import type { Millis } from '../../domain/units.ts'
import { isoTime, maybeAmount, maybeTime } from '../wire/amounts.ts'
import { maybeAmountOf, named, nullable, nullableObject, Time, words } from '../wire/schema.ts'

const STATUSES = ['live', 'waiting', 'halted', 'stale'] as const

export const SourceReading = named('SourceReading', {
  source: Type.String({ description: 'Name of the source.' }),
  ...maybeAmountOf('price', 'What the source says; null without a reading, and for a trading session.'),
  observed_at: nullable(Time('When the source observed it.')),
  dropped: nullable(
    Type.String({
      description:
        'Why the reading does not count: NO_READING, NOT_POSITIVE, OUT_OF_RANGE, STALE, FUTURE, TOO_EARLY, OUT_OF_ORDER, CONTRADICTORY ' +
        'or OUTLIER; null if it counts.',
    }),
  ),
  detail: nullable(
    Type.String({ description: 'The fault of a source without a reading, such as HTTP_500.' }),
  ),
})
export type SourceReading = Static<typeof SourceReading>

export const statusFields = {
  status: words(
    STATUSES,
    'live; waiting (no new report: the latest one serves until it is too old); halted (the sources or the price contradict the latest ' +
      'report: no batch, no trigger, no placement); stale (the latest report is too old).',
  ),
  reason: nullable(
    Type.String({ description: `Why the feed is not live: ${ABSENCE_REASONS.join(', ')} or REPORT_STALE.` }),
  ),
  since: nullable(Time('Time of the last change between live, waiting and halted.')),
  observed_at: nullable(Time('Observation time of the latest report.')),
  sources: Type.Array(SourceReading, {
    description:
      'The readings behind the latest report, or those that yielded none. Empty outside a trading session, when the report repeats the ' +
      'last regular price.',
  }),
}

export const oracleFields = {
  oracle: nullableObject(
    Type.Object(statusFields),
    'State of the index feed; null if no price was ever published.',
  ),
}

export interface FeedColumns {
  readonly feed: Feed
  readonly observed_at: number | null
  readonly readings: string
  readonly status: FeedStatus
  readonly reason: AbsenceReason | null
  readonly since: number
}

/** As stored: amounts in wei are decimal strings. */
interface StoredReading {
  readonly source: string
  readonly reading: { readonly price: string; readonly observedAt: number } | null
  readonly dropped: string | null
  readonly detail: string | null
}

export const sourcesView = (feed: Feed, readings: string): SourceReading[] =>
  (JSON.parse(readings) as StoredReading[]).map(({ source, reading, dropped, detail }) => ({
    source,
    ...maybeAmount('price', reading === null || feed === 'session' ? null : BigInt(reading.price)),
    observed_at: maybeTime(reading?.observedAt ?? null),
    dropped,
    detail: detail ?? null,
  }))

/** A report of a publisher that is gone only gets older, so its age decides too. */
export function statusView(
  { feed, observed_at, readings, status, reason, since }: FeedColumns,
  now: Millis,
  maxAgeMs: number,
) {
  const isStale = status !== 'halted' && observed_at !== null && now - observed_at > maxAgeMs
  return {
    status: isStale ? ('stale' as const) : status,
    reason: isStale ? (reason ?? 'REPORT_STALE') : reason,
    since: isoTime(since),
    observed_at: maybeTime(observed_at),
    sources: sourcesView(feed, readings),
  }
}

/** The index feed in a row of a market; null together without one. */
export interface OracleColumns {
  readonly feed_observed_at: number | null
  readonly feed_readings: string | null
  readonly feed_status: FeedStatus | null
  readonly feed_reason: AbsenceReason | null
  readonly feed_since: number | null
}

export function oracleView(row: OracleColumns, now: Millis, maxAgeMs: number) {
  if (row.feed_status === null) return { oracle: null }
  const columns: FeedColumns = {
    feed: 'index',
    observed_at: row.feed_observed_at,
    readings: row.feed_readings ?? '[]',
    status: row.feed_status,
    reason: row.feed_reason,
    since: row.feed_since ?? 0,
  }
  return { oracle: statusView(columns, now, maxAgeMs) }
}

/**
 * Decides which source readings count for a feed.
 * The index of a market with a calendar uses only regular prices; a final price uses only readings after the close.
 */
import { sessionAt, sessionsBetween, type TradingCalendar } from '../market/trading-calendar.ts'
import { type Closing, closesAt } from '../risk/ending.ts'
import type { Millis } from '../units.ts'

/** Readings count if observed at or after `since` and fresh at `asOf`. */
export interface ReadingWindow {
  readonly since: Millis
  readonly asOf: Millis
}

/** How far back the last session is searched: longer than any regular closure. */
const SEARCH = 30 * 86_400_000

/**
 * Reading window of the index.
 * Within a session only its own readings count: after the opening, the previous day's close would be a wrong
 * price. Outside a session no reading counts (null): the feed repeats its last price with a new time, so that
 * the report stays fresh. A feed without a report starts with the previous close: readings at the end of the
 * last session, from sources that still have them.
 */
export function indexWindow(
  calendar: TradingCalendar | null,
  at: Millis,
  hasReported: boolean,
): ReadingWindow | null {
  if (calendar === null) return { since: 0 as Millis, asOf: at }
  const { isOpen, opensAt } = sessionAt(calendar, at)
  if (isOpen) return { since: opensAt, asOf: at }
  if (hasReported) return null
  const last = sessionsBetween(calendar, (at - SEARCH) as Millis, at).at(-1)
  // The closing millisecond is not in the session.
  return last === undefined ? null : { since: last.opensAt, asOf: (last.closesAt - 1) as Millis }
}

/**
 * Reading window of the final price; null before the market's close, because the contract rejects earlier reports.
 */
export function finalWindow(closing: Closing, at: Millis): ReadingWindow | null {
  const close = closesAt(closing)
  return close === null || at < close ? null : { since: close, asOf: at }
}

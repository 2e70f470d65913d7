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

/** Reading window of the index; null outside a session, when the feed repeats its last price with a new time. */
export function indexWindow(
  calendar: TradingCalendar | null,
  at: Millis,
  hasReported: boolean,
): ReadingWindow | null {
  if (calendar === null) return { since: 0 as Millis, asOf: at }
  const { isOpen, opensAt } = sessionAt(calendar, at)
  // After the opening, the previous day's close would be a wrong price.
  if (isOpen) return { since: opensAt, asOf: at }
  if (hasReported) return null
  // A feed without a report starts with the previous close: readings at the end of the last session.
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

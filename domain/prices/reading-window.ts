/**
 * Which readings of its sources count for a feed. The index of a market with a trading calendar reports nothing
 * but regular prices, and a final price is one of after the close.
 */
import { sessionAt, sessionsBetween, type TradingCalendar } from '../market/trading-calendar.ts'
import { type Closing, closesAt } from '../risk/ending.ts'
import type { Millis } from '../units.ts'

/** Readings count if they were observed from `since` on, and are fresh as of `asOf`. */
export interface ReadingWindow {
  readonly since: Millis
  readonly asOf: Millis
}

/** How far back the last session is searched: longer than any closure by rule. */
const SEARCH = 30 * 86_400_000

/**
 * For the index. Within a session, its own readings count: after the opening, the close of the day before would
 * be a wrong price. Outside a session none does (null), and the feed repeats the price of its last report with
 * a new time, so that the report stays fresh. A feed without a report has nothing to repeat, so it starts with
 * the previous close: the readings as of the end of the last session, from sources that still have them.
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

/** For the final price: null, so no report, before the market's close. The contract rejects earlier reports. */
export function finalWindow(closing: Closing, at: Millis): ReadingWindow | null {
  const close = closesAt(closing)
  return close === null || at < close ? null : { since: close, asOf: at }
}

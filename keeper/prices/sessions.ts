/** The running trading session of each calendar, computed once per change instead of once per market and tick. */
import { type SessionState, sessionAt, type TradingCalendar } from '../../domain/market/trading-calendar.ts'
import { indexWindow, type ReadingWindow } from '../../domain/prices/reading-window.ts'
import type { Millis } from '../../domain/units.ts'

interface Known {
  readonly session: SessionState
  readonly from: Millis
  readonly until: Millis
  /** Reading windows by whether the feed has reported. */
  readonly windows: Map<boolean, ReadingWindow | null>
}

/** Interval after which a calendar without a known next change is computed again. */
const DAY_MS = 86_400_000

export interface Sessions {
  at(calendar: TradingCalendar, now: Millis): SessionState
  /** Reading window of the index; null if no reading counts, and the feed repeats its last report. */
  windowAt(calendar: TradingCalendar | null, now: Millis, hasReported: boolean): ReadingWindow | null
}

export function createSessions(): Sessions {
  const knowns = new WeakMap<TradingCalendar, Known>()

  function knownAt(calendar: TradingCalendar, now: Millis): Known {
    const before = knowns.get(calendar)
    if (before !== undefined && before.from <= now && now < before.until) return before
    const session = sessionAt(calendar, now)
    const until = session.nextChangeAt ?? ((now + DAY_MS) as Millis)
    const known: Known = { session, from: now, until, windows: new Map() }
    knowns.set(calendar, known)
    return known
  }

  return {
    at: (calendar, now) => knownAt(calendar, now).session,
    windowAt(calendar, now, hasReported) {
      if (calendar === null) return indexWindow(null, now, hasReported)
      const { session, windows } = knownAt(calendar, now)
      let window = windows.get(hasReported)
      if (window === undefined) {
        window = indexWindow(calendar, now, hasReported)
        windows.set(hasReported, window)
      }
      return window !== null && session.isOpen ? { ...window, asOf: now } : window
    },
  }
}

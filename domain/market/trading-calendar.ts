/**
 * Trading sessions: the times at which the underlying's exchange is open.
 * Funding accrues only during sessions; between sessions the index feed repeats the last regular price.
 */
import { type Day, type Millis, maxOf, minOf } from '../units.ts'
import { plusDays } from './civil-day.ts'
import { type Hours, nyseHours, REGULAR_HOURS } from './nyse-hours.ts'

/** `ALWAYS_OPEN` is one session without an end, for tests and demonstrations. */
export const CALENDAR_NAMES = ['NYSE', 'ALWAYS_OPEN'] as const
export type CalendarName = (typeof CALENDAR_NAMES)[number]

/** Converts a New York date and the minutes after its midnight to Unix milliseconds. */
export type LocalTime = (day: Day, minute: number) => Millis

/** Exceptional hours of one date, edited by operators; null: closed all day. */
export interface CalendarException {
  readonly day: Day
  readonly hours: Hours | null
}

/** An exception shortens a session or moves it within the regular hours, so no session exceeds 6.5 hours. */
export const areExceptionHours = ({ opens, closes }: Hours): boolean =>
  Number.isInteger(opens) &&
  Number.isInteger(closes) &&
  REGULAR_HOURS.opens <= opens &&
  opens < closes &&
  closes <= REGULAR_HOURS.closes

export type TradingCalendar =
  | { readonly name: 'ALWAYS_OPEN' }
  | {
      readonly name: 'NYSE'
      readonly exceptions: ReadonlyMap<Day, Hours | null>
      readonly newYorkTime: LocalTime
    }

export const ALWAYS_OPEN: TradingCalendar = { name: 'ALWAYS_OPEN' }

export const nyseCalendar = (
  exceptions: readonly CalendarException[],
  newYorkTime: LocalTime,
): TradingCalendar => ({
  name: 'NYSE',
  exceptions: new Map(exceptions.map(({ day, hours }) => [day, hours])),
  newYorkTime,
})

/** Open from `opensAt`, inclusive, to `closesAt`, exclusive. */
export interface TradingSession {
  readonly opensAt: Millis
  readonly closesAt: Millis
}

export interface SessionState {
  readonly isOpen: boolean
  /** Start of the running session; 0 outside a session, and for a session without a start. */
  readonly opensAt: Millis
  /** End of the running session; 0 outside a session. This is the value of the session feed. */
  readonly endsAt: Millis
  /** The next opening or closing; null if none is known. */
  readonly nextChangeAt: Millis | null
}

/** End of an unlimited session: 10000-01-01, which every clock and format can represent. */
const NEVER = 253_402_300_800_000 as Millis
const MILLIS_PER_DAY = 86_400_000
/** How many days ahead the next session is searched. The longest closure so far took four months, in 1914. */
const SEARCH_DAYS = 400

const CLOSED: SessionState = { isOpen: false, opensAt: 0 as Millis, endsAt: 0 as Millis, nextChangeAt: null }
const ALWAYS: SessionState = { isOpen: true, opensAt: 0 as Millis, endsAt: NEVER, nextChangeAt: null }

/** The session at `at`, and its next opening or closing. */
export function sessionAt(calendar: TradingCalendar, at: Millis): SessionState {
  if (calendar.name === 'ALWAYS_OPEN') return ALWAYS
  for (const { opensAt, closesAt } of sessionsAfter(calendar, at, SEARCH_DAYS)) {
    if (opensAt <= at) return { isOpen: true, opensAt, endsAt: closesAt, nextChangeAt: closesAt }
    return { ...CLOSED, nextChangeAt: opensAt }
  }
  return CLOSED
}

/**
 * Sessions between two times, ascending and without overlap. The first and the last session are clipped to
 * the interval.
 */
export function sessionsBetween(calendar: TradingCalendar, from: Millis, to: Millis): TradingSession[] {
  if (from >= to) return []
  if (calendar.name === 'ALWAYS_OPEN') return [{ opensAt: from, closesAt: to }]
  const days = Math.ceil((to - from) / MILLIS_PER_DAY)
  return [...sessionsAfter(calendar, from, days)]
    .filter(({ opensAt }) => opensAt < to)
    .map(({ opensAt, closesAt }) => ({ opensAt: maxOf(opensAt, from), closesAt: minOf(closesAt, to) }))
}

/** Yields sessions that end after `at`, ascending, until `at` plus the given number of days. */
function* sessionsAfter(
  calendar: Extract<TradingCalendar, { name: 'NYSE' }>,
  at: Millis,
  days: number,
): Generator<TradingSession> {
  // The New York date is the UTC date or the day before.
  const first = plusDays(Math.floor(at / MILLIS_PER_DAY) as Day, -1)
  for (let day = first; day <= first + days + 1; day = plusDays(day, 1)) {
    const hours = calendar.exceptions.has(day) ? calendar.exceptions.get(day) : nyseHours(day)
    if (!hours) continue
    const closesAt = calendar.newYorkTime(day, hours.closes)
    if (closesAt > at) yield { opensAt: calendar.newYorkTime(day, hours.opens), closesAt }
  }
}

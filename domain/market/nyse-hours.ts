/**
 * Regular hours of the New York Stock Exchange since 2022: holidays and early closes by rule.
 * Other closures are exceptions of the calendar (`trading-calendar.ts`).
 */
import type { Day } from '../units.ts'
import {
  dateOf,
  dayOf,
  easterOf,
  MONDAY,
  nthWeekday,
  plusDays,
  SATURDAY,
  SUNDAY,
  THURSDAY,
  weekdayOf,
} from './civil-day.ts'

/** Minutes after midnight, New York time: open from `opens`, inclusive, to `closes`, exclusive. */
export interface Hours {
  readonly opens: number
  readonly closes: number
}

/** 09:30 to 16:00. */
export const REGULAR_HOURS: Hours = { opens: 9 * 60 + 30, closes: 16 * 60 }
/** 09:30 to 13:00. */
export const EARLY_CLOSE: Hours = { opens: REGULAR_HOURS.opens, closes: 13 * 60 }

const FIRST_JUNETEENTH = 2022

/** A holiday on a Saturday closes the exchange on Friday, a holiday on a Sunday on Monday. */
function observed(holiday: Day): Day {
  const weekday = weekdayOf(holiday)
  if (weekday === SATURDAY) return plusDays(holiday, -1)
  return weekday === SUNDAY ? plusDays(holiday, 1) : holiday
}

/**
 * Dates in a year on which holidays close the exchange.
 * Dates outside the year do not count: a New Year's Day on a Saturday does not close the Friday before, which
 * is the last day of an accounting year.
 */
const holidaysOf = (year: number): readonly Day[] => [
  observed(dayOf(year, 1, 1)),
  // Martin Luther King Jr. Day, Washington's Birthday, Good Friday, Memorial Day
  nthWeekday(year, 1, MONDAY, 3),
  nthWeekday(year, 2, MONDAY, 3),
  plusDays(easterOf(year), -2),
  plusDays(nthWeekday(year, 6, MONDAY, 1), -7),
  ...(year >= FIRST_JUNETEENTH ? [observed(dayOf(year, 6, 19))] : []),
  observed(dayOf(year, 7, 4)),
  // Labor Day
  nthWeekday(year, 9, MONDAY, 1),
  thanksgivingOf(year),
  observed(dayOf(year, 12, 25)),
]

const thanksgivingOf = (year: number): Day => nthWeekday(year, 11, THURSDAY, 4)

/** Dates that close early if they are trading days. */
const shortDaysOf = (year: number): readonly Day[] => [
  dayOf(year, 7, 3),
  plusDays(thanksgivingOf(year), 1),
  dayOf(year, 12, 24),
]

/** Null if the exchange is closed on the day. */
export function nyseHours(day: Day): Hours | null {
  const weekday = weekdayOf(day)
  const { year } = dateOf(day)
  if (weekday === SATURDAY || weekday === SUNDAY || holidaysOf(year).includes(day)) return null
  return shortDaysOf(year).includes(day) ? EARLY_CLOSE : REGULAR_HOURS
}

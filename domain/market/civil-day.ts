/** Gregorian dates as day numbers, without a clock or a time zone. */
import type { Day } from '../units.ts'

export interface CivilDate {
  readonly year: number
  /** Month from 1 to 12. */
  readonly month: number
  readonly day: number
}

/** Days of 400 years. */
const DAYS_PER_ERA = 146_097
/** Days from 0000-03-01 to 1970-01-01. */
const DAYS_BEFORE_1970 = 719_468

/** Day number of a date. Years start in March, so that a leap day is the last day of its year. */
export function dayOf(year: number, month: number, day: number): Day {
  const yearFromMarch = month > 2 ? year : year - 1
  const era = Math.floor(yearFromMarch / 400)
  const yearOfEra = yearFromMarch - era * 400
  const leapDays = Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100)
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1
  return (era * DAYS_PER_ERA + yearOfEra * 365 + leapDays + dayOfYear - DAYS_BEFORE_1970) as Day
}

/** The inverse of `dayOf`. */
export function dateOf(day: Day): CivilDate {
  const shifted = day + DAYS_BEFORE_1970
  const era = Math.floor(shifted / DAYS_PER_ERA)
  const dayOfEra = shifted - era * DAYS_PER_ERA
  const leapDays =
    Math.floor(dayOfEra / 1_460) - Math.floor(dayOfEra / 36_524) + Math.floor(dayOfEra / 146_096)
  const yearOfEra = Math.floor((dayOfEra - leapDays) / 365)
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153)
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1,
  }
}

export type Weekday = 0 | 1 | 2 | 3 | 4 | 5 | 6
export const SUNDAY = 0
export const MONDAY = 1
export const THURSDAY = 4
export const SATURDAY = 6

/** 1970-01-01 is a Thursday. */
export const weekdayOf = (day: Day): Weekday => ((((day + THURSDAY) % 7) + 7) % 7) as Weekday

export const plusDays = (day: Day, days: number): Day => (day + days) as Day

/** Day of the nth given weekday in a month; `nth` starts at 1. */
export function nthWeekday(year: number, month: number, weekday: Weekday, nth: number): Day {
  const first = dayOf(year, month, 1)
  return plusDays(first, ((weekday - weekdayOf(first) + 7) % 7) + 7 * (nth - 1))
}

/** Easter Sunday by the Gregorian computus (Meeus, Jones and Butcher). */
export function easterOf(year: number): Day {
  const goldenIndex = year % 19
  const century = Math.floor(year / 100)
  const yearOfCentury = year % 100
  const correction = Math.floor((8 * century + 13) / 25)
  const epact = (19 * goldenIndex + century - Math.floor(century / 4) - correction + 15) % 30
  const fullMoonToSunday =
    (32 + 2 * (century % 4) + 2 * Math.floor(yearOfCentury / 4) - epact - (yearOfCentury % 4)) % 7
  const exception = Math.floor((goldenIndex + 11 * epact + 22 * fullMoonToSunday) / 451)
  const daysAfterMarch22 = epact + fullMoonToSunday - 7 * exception
  return plusDays(dayOf(year, 3, 22), daysAfterMarch22)
}

const two = (number: number): string => String(number).padStart(2, '0')

/** Formats a day as `YYYY-MM-DD`. */
export function dayText(day: Day): string {
  const { year, month, day: dayOfMonth } = dateOf(day)
  return `${String(year).padStart(4, '0')}-${two(month)}-${two(dayOfMonth)}`
}

/** Parses `YYYY-MM-DD`; null if the text is not an existing date. */
export function parseDay(text: string): Day | null {
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text) ?? []
  if (year === undefined) return null
  const parsed = dayOf(Number(year), Number(month), Number(day))
  return dayText(parsed) === text ? parsed : null
}

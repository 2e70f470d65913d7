import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { dateOf, dayOf, dayText, parseDay, plusDays, weekdayOf } from '../../../domain/market/civil-day.ts'
import { nyseHours } from '../../../domain/market/nyse-hours.ts'
import {
  ALWAYS_OPEN,
  areExceptionHours,
  type CalendarException,
  nyseCalendar,
  sessionAt,
  sessionsBetween,
} from '../../../domain/market/trading-calendar.ts'
import type { Day, Millis } from '../../../domain/units.ts'
import { newYorkTime } from '../../../service/new-york-time.ts'

const day = (text: string): Day => parseDay(text) as Day
const time = (text: string): Millis => Date.parse(text) as Millis
const iso = (at: number): string => new Date(at).toISOString()
const closed = (text: string): CalendarException => ({ day: day(text), hours: null })
const MOURNING = closed('2025-01-09')
const calendar = nyseCalendar([MOURNING], newYorkTime)
const at = (text: string, of = calendar) => {
  const { isOpen, endsAt, nextChangeAt } = sessionAt(of, time(text))
  return [isOpen, endsAt === 0 ? 0 : iso(endsAt), nextChangeAt === null ? null : iso(nextChangeAt)]
}

/** As the exchange has published its holidays, closures and early closes, without the rules behind them. */
const CLOSED_DATES: Record<number, string> = {
  2024: '01-01 01-15 02-19 03-29 05-27 06-19 07-04 09-02 11-28 12-25',
  2025: '01-01 01-09 01-20 02-17 04-18 05-26 06-19 07-04 09-01 11-27 12-25',
  2026: '01-01 01-19 02-16 04-03 05-25 06-19 07-03 09-07 11-26 12-25',
  2027: '01-01 01-18 02-15 03-26 05-31 06-18 07-05 09-06 11-25 12-24',
}
const EARLY_DATES: Record<number, string> = {
  2024: '07-03 11-29 12-24',
  2025: '07-03 11-28 12-24',
  2026: '11-27 12-24',
  2027: '11-26',
}
/** The dates from which New York's clocks are 4 and again 5 hours behind UTC. */
const CLOCK_CHANGES: Record<number, readonly [string, string]> = {
  2024: ['03-10', '11-03'],
  2025: ['03-09', '11-02'],
  2026: ['03-08', '11-01'],
  2027: ['03-14', '11-07'],
}
const YEARS = [2024, 2025, 2026, 2027]
const datesIn = (dates: Record<number, string>): string[] =>
  YEARS.flatMap((year) => (dates[year] as string).split(' ').map((date) => `${year}-${date}`))

const HOUR = 3_600_000

/** Openings and closings in UTC from the table above, by `Date` alone. */
function publishedSessions(): { opensAt: number; closesAt: number }[] {
  const [closedDates, earlyDates] = [new Set(datesIn(CLOSED_DATES)), new Set(datesIn(EARLY_DATES))]
  const sessions = []
  for (let midnight = Date.UTC(2024, 0, 1); midnight < Date.UTC(2028, 0, 1); midnight += 24 * HOUR) {
    const date = iso(midnight).slice(0, 10)
    if ([0, 6].includes(new Date(midnight).getUTCDay()) || closedDates.has(date)) continue
    const [spring, autumn] = CLOCK_CHANGES[Number(date.slice(0, 4))] as readonly [string, string]
    const isSummer = date.slice(5) >= spring && date.slice(5) < autumn
    const start = midnight + (isSummer ? 4 : 5) * HOUR
    sessions.push({ opensAt: start + 9.5 * HOUR, closesAt: start + (earlyDates.has(date) ? 13 : 16) * HOUR })
  }
  return sessions
}

describe('domain/market/trading-calendar', () => {
  describe('the years 2024 to 2027', () => {
    const sessions = sessionsBetween(calendar, time('2024-01-01T00:00:00Z'), time('2028-01-01T00:00:00Z'))

    it('when compared with the published dates, it has the same 1,004 openings and closings to the millisecond', () => {
      expect(datesIn(CLOSED_DATES)).to.have.length(41)
      expect(datesIn(EARLY_DATES)).to.have.length(9)
      expect(sessions).to.have.length(1_004).and.to.deep.equal(publishedSessions())
    })

    it('when the rules are compared with the published dates, they differ only in the closure of 2025-01-09', () => {
      const days = Array.from({ length: 1_461 }, (_, index) => plusDays(day('2024-01-01'), index))
      const isWeekday = (each: Day) => weekdayOf(each) !== 0 && weekdayOf(each) !== 6
      const holidays = days.filter((each) => isWeekday(each) && nyseHours(each) === null).map(dayText)
      expect([...holidays, '2025-01-09'].sort()).to.deep.equal(datesIn(CLOSED_DATES))
      expect(days.filter((each) => nyseHours(each)?.closes === 13 * 60).map(dayText)).to.deep.equal(
        datesIn(EARLY_DATES),
      )
    })

    it('when printed in New York time by the runtime, each session opens at 09:30 and closes at 16:00 or 13:00', () => {
      const clock = new Intl.DateTimeFormat('en-GB', { timeZone: 'America/New_York', timeStyle: 'short' })
      expect(new Set(sessions.map(({ opensAt }) => clock.format(opensAt)))).to.deep.equal(new Set(['09:30']))
      expect(new Set(sessions.map(({ closesAt }) => clock.format(closesAt)))).to.deep.equal(
        new Set(['16:00', '13:00']),
      )
    })
  })

  it('when a holiday is on a weekend, the Friday before or the Monday after closes, except before New Year', () => {
    const hours = (text: string) => nyseHours(day(text))
    // Saturdays: Independence Day 2026, Christmas 2027, Juneteenth 2027, New Year 2028 and 2022.
    for (const text of ['2026-07-03', '2027-12-24', '2027-06-18']) expect(hours(text), text).to.equal(null)
    for (const text of ['2027-12-31', '2021-12-31']) expect(hours(text)?.closes, text).to.equal(16 * 60)
    // Sundays: New Year 2023, Independence Day 2027, Christmas 2022, Juneteenth 2033.
    for (const text of ['2023-01-02', '2027-07-05', '2022-12-26', '2033-06-20'])
      expect(hours(text), text).to.equal(null)
    // No early close before a weekend: 2 July 2027 and 23 December 2022 are full days.
    for (const text of ['2027-07-02', '2022-12-23']) expect(hours(text)?.closes, text).to.equal(16 * 60)
  })

  it('when the year is before 2022, 19 June is a trading day', () => {
    expect(nyseHours(day('2020-06-19'))).to.not.equal(null)
    expect(nyseHours(day('2022-06-20'))).to.equal(null)
  })

  it('when Easter is early, late, or in a leap year, Good Friday is found', () => {
    for (const text of ['2008-03-21', '2011-04-22', '2024-03-29', '2028-04-14', '2038-04-23'])
      expect(nyseHours(day(text)), text).to.equal(null)
  })

  it('when a session opens or closes, the opening millisecond is in it and the closing one is not', () => {
    const [opening, closing] = ['2026-11-20T14:30:00.000Z', '2026-11-20T21:00:00.000Z']
    expect(at('2026-11-20T14:29:59.999Z')).to.deep.equal([false, 0, opening])
    expect(at('2026-11-20T14:30:00.000Z')).to.deep.equal([true, closing, closing])
    expect(at('2026-11-20T20:59:59.999Z')).to.deep.equal([true, closing, closing])
    expect(at('2026-11-20T21:00:00.000Z')).to.deep.equal([false, 0, '2026-11-23T14:30:00.000Z'])
  })

  it('when clocks change in New York, sessions move by an hour in UTC from the next trading day on', () => {
    for (const [before, change, opening] of [
      ['2026-10-30T20:00:00Z', 'autumn', '2026-11-02T14:30:00.000Z'],
      ['2027-03-12T21:00:00Z', 'spring', '2027-03-15T13:30:00.000Z'],
    ] as const)
      expect(at(before), change).to.deep.equal([false, 0, opening])
    expect(at('2026-10-30T13:30:00Z')[0]).to.equal(true)
    expect(at('2027-03-12T14:29:59.999Z')[0]).to.equal(false)
  })

  it('when a day closes early, its session ends at 13:00 in New York', () => {
    expect(at('2026-11-27T17:59:59.999Z')).to.deep.equal([
      true,
      '2026-11-27T18:00:00.000Z',
      '2026-11-27T18:00:00.000Z',
    ])
    expect(at('2026-11-27T18:00:00Z')).to.deep.equal([false, 0, '2026-11-30T14:30:00.000Z'])
  })

  it('when 29 February is a trading day, it has a session', () => {
    expect(at('2024-02-29T15:00:00Z')[0]).to.equal(true)
    expect(at('2028-02-29T15:00:00Z')[0]).to.equal(true)
  })

  it('when an exception closes the running day, the session has ended and the next change is the next opening', () => {
    const noon = '2026-11-20T17:00:00Z'
    expect(at(noon)[0]).to.equal(true)
    const edited = nyseCalendar([MOURNING, closed('2026-11-20'), closed('2026-11-23')], newYorkTime)
    expect(at(noon, edited)).to.deep.equal([false, 0, '2026-11-24T14:30:00.000Z'])
  })

  it("when an exception has hours, they replace the day's regular hours, also on a holiday", () => {
    const hours = { opens: 11 * 60, closes: 14 * 60 + 20 }
    for (const date of ['2026-11-20', '2026-11-26']) {
      const edited = nyseCalendar([{ day: day(date), hours }], newYorkTime)
      expect(at(`${date}T15:59:59.999Z`, edited)).to.deep.equal([false, 0, `${date}T16:00:00.000Z`])
      const end = `${date}T19:20:00.000Z`
      expect(at(`${date}T16:00:00Z`, edited)).to.deep.equal([true, end, end])
      expect(at(`${date}T19:20:00Z`, edited)[0]).to.equal(false)
    }
  })

  it('when exceptional hours are empty, outside 09:30 to 16:00, or no whole minutes, they are invalid', () => {
    expect(areExceptionHours({ opens: 570, closes: 960 })).to.equal(true)
    for (const hours of [
      { opens: 569, closes: 960 },
      { opens: 570, closes: 961 },
      { opens: 600, closes: 600 },
      { opens: 700, closes: 600 },
      { opens: 570.5, closes: 600 },
      { opens: Number.NaN, closes: 600 },
    ])
      expect(areExceptionHours(hours), JSON.stringify(hours)).to.equal(false)
  })

  it('when a closure is longer than the search, no next change is known', () => {
    const months = Array.from({ length: 420 }, (_, index) => ({
      day: plusDays(day('2026-11-20'), index),
      hours: null,
    }))
    expect(at('2026-11-20T12:00:00Z', nyseCalendar(months, newYorkTime))).to.deep.equal([false, 0, null])
  })

  it('when a calendar is always open, one session runs without a next change', () => {
    const [from, to] = [time('2026-11-22T00:00:00Z'), time('2026-11-23T00:00:00Z')]
    expect(sessionAt(ALWAYS_OPEN, from)).to.include({ isOpen: true, nextChangeAt: null })
    expect(sessionAt(ALWAYS_OPEN, to).endsAt).to.be.greaterThan(to + 1_000 * 365 * 24 * HOUR)
    expect(sessionsBetween(ALWAYS_OPEN, from, to)).to.deep.equal([{ opensAt: from, closesAt: to }])
    expect(sessionsBetween(ALWAYS_OPEN, to, from)).to.deep.equal([])
  })

  it('when an interval starts or ends within a session, the session is cut to the interval', () => {
    const [from, to] = [time('2026-11-19T15:00:00Z'), time('2026-11-20T20:00:00Z')]
    expect(sessionsBetween(calendar, from, to)).to.deep.equal([
      { opensAt: from, closesAt: time('2026-11-19T21:00:00Z') },
      { opensAt: time('2026-11-20T14:30:00Z'), closesAt: to },
    ])
    expect(
      sessionsBetween(calendar, time('2026-11-21T00:00:00Z'), time('2026-11-23T14:30:00Z')),
    ).to.deep.equal([])
  })

  const anyExceptions = fc.array(
    fc.record({
      day: fc.integer({ min: day('2024-01-01'), max: day('2030-12-31') }).map((each) => each as Day),
      hours: fc.option(
        fc
          .tuple(fc.integer({ min: 570, max: 959 }), fc.integer({ min: 1, max: 390 }))
          .map(([opens, length]) => ({
            opens,
            closes: Math.min(960, opens + length),
          })),
      ),
    }),
    { maxLength: 20 },
  )
  const anyTime = fc
    .integer({ min: Date.UTC(2024, 0, 1), max: Date.UTC(2030, 11, 31) })
    .map((each) => each as Millis)

  it('when exceptions are arbitrary, sessions never overlap and last at most 6.5 hours', () => {
    fc.assert(
      fc.property(anyExceptions, anyTime, fc.integer({ min: 0, max: 60 }), (exceptions, from, days) => {
        const sessions = sessionsBetween(
          nyseCalendar(exceptions, newYorkTime),
          from,
          (from + days * 24 * HOUR) as Millis,
        )
        let last = 0
        for (const { opensAt, closesAt } of sessions) {
          expect(opensAt).to.be.greaterThan(last)
          expect(closesAt - opensAt).to.be.within(1, 6.5 * HOUR)
          last = closesAt
        }
      }),
      { numRuns: 100 },
    )
  })

  it('when changes are followed one by one, they strictly increase, alternate, and agree with the sessions', () => {
    fc.assert(
      fc.property(anyExceptions, anyTime, (exceptions, from) => {
        const of = nyseCalendar(exceptions, newYorkTime)
        const changes: number[] = []
        for (let now = from, count = 0; count < 12; count++) {
          const state = sessionAt(of, now)
          const change = state.nextChangeAt as Millis
          expect(change).to.be.greaterThan(now)
          expect(state.endsAt).to.equal(state.isOpen ? change : 0)
          const begin = sessionsBetween(of, (from - 24 * HOUR) as Millis, change).at(-1)?.opensAt
          expect(state.opensAt).to.equal(state.isOpen ? begin : 0)
          expect(sessionAt(of, (change - 1) as Millis)).to.deep.equal(state)
          expect(sessionAt(of, change).isOpen).to.equal(!state.isOpen)
          changes.push(change)
          now = change
        }
        const until = changes.at(-1) as Millis
        const ends = sessionsBetween(of, from, until).flatMap(({ opensAt, closesAt }) => [opensAt, closesAt])
        // The first end is `from` if a session runs then. The session that opens at `until` is not in the interval.
        expect(ends.filter((each) => each > from && each < until)).to.deep.equal(changes.slice(0, -1))
      }),
      { numRuns: 50 },
    )
  })

  describe('dates', () => {
    it('when a date is counted in days and back, it is the same as the runtime computes', () => {
      fc.assert(
        fc.property(fc.integer({ min: -700_000, max: 2_900_000 }), (days) => {
          const date = new Date(days * 24 * HOUR)
          const [year, month, dayOfMonth] = [date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate()]
          expect(dateOf(days as Day)).to.deep.equal({ year, month, day: dayOfMonth })
          expect(dayOf(year, month, dayOfMonth)).to.equal(days)
          expect(weekdayOf(days as Day)).to.equal(date.getUTCDay())
        }),
      )
    })

    it('when a text is no existing date, it is not parsed', () => {
      expect(dayText(day('2024-02-29'))).to.equal('2024-02-29')
      for (const text of ['2023-02-29', '2026-13-01', '2026-11-31', '2026-1-5', '20260105', '2026-00-10', ''])
        expect(parseDay(text), text).to.equal(null)
    })
  })
})

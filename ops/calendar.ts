/** The commands of `npm run cb -- ops calendar …`. Each prints the change of the database that it would make; `--send` makes it. */
import {
  loadExceptions,
  putException,
  removeException,
  type StoredException,
} from '../db/calendar-exceptions.ts'
import { readClock } from '../db/clock.ts'
import { loadCalendars, RELOAD_MS } from '../db/trading-calendars.ts'
import { dayText, parseDay } from '../domain/market/civil-day.ts'
import { type Hours, nyseHours } from '../domain/market/nyse-hours.ts'
import { areExceptionHours, CALENDAR_NAMES, sessionAt } from '../domain/market/trading-calendar.ts'
import type { Day, MarketId } from '../domain/units.ts'
import { type Arguments, type Flags, oneOf, required, text, toggle } from '../service/command-line.ts'
import { timeOfMillis } from '../tasks/print.ts'
import { type DatabaseConnection, type Env, onDatabase } from './connect.ts'
import { OpsError } from './error.ts'

const STACK = {
  stack: text(
    '<file>',
    'stack.json of a running stack; without it the database at DATABASE_URL, of its owner',
  ),
} as const
const DATE = { date: required(text('<YYYY-MM-DD>', 'date of the exception, in New York')) } as const
const SEND = { send: toggle('write it; without it the command only prints') } as const
const MAX_REASON = 200

interface Command<Declared extends Flags> {
  readonly help: string
  readonly flags: Declared
  readonly run: (connection: DatabaseConnection, flags: Arguments<Declared>) => Promise<void>
}

const command = <Declared extends Flags>(each: Command<Declared>): Command<Declared> => each

// ---------------------------------------------------------------------- flags

const minuteText = (minute: number): string =>
  `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`
const hoursText = (hours: Hours | null): string =>
  hours === null ? 'closed' : `${minuteText(hours.opens)}-${minuteText(hours.closes)}`

function dateOf(given: string): Day {
  const day = parseDay(given)
  if (day !== null) return day
  throw new OpsError(`--date must be a date such as 2026-11-27; received ${given}`)
}

function hoursOf(given: string): Hours | null {
  if (given === 'closed') return null
  const match = /^(\d\d):([0-5]\d)-(\d\d):([0-5]\d)$/.exec(given)
  const [openHour = 0, openMinute = 0, closeHour = 0, closeMinute = 0] = (match ?? []).slice(1).map(Number)
  const hours = { opens: openHour * 60 + openMinute, closes: closeHour * 60 + closeMinute }
  if (areExceptionHours(hours)) return hours
  throw new OpsError(`--hours must be closed, or within 09:30-16:00 as 09:30-13:00; received ${given}`)
}

function reasonOf(given: string): string {
  if (given.length <= MAX_REASON) return given
  throw new OpsError(`--reason must have at most ${MAX_REASON} characters; received ${given.length}`)
}

const exceptionOf = (exceptions: readonly StoredException[], day: Day): StoredException | undefined =>
  exceptions.find((each) => each.day === day)

/** Prints the change, and makes it if `send` is set. */
async function change(description: string, send: boolean, write: () => Promise<void>): Promise<void> {
  console.log(description)
  if (!send) return console.log('Nothing was written: --send writes it.')
  await write()
  console.log(`Written. Running processes apply it within ${RELOAD_MS / 1000} s.`)
}

// ---------------------------------------------------------------------- commands

const show = command({
  help: 'the session of New York, the exceptions of its calendar, and the calendar of each market',
  flags: STACK,
  async run({ db }) {
    const now = await readClock(db)
    const { isOpen, nextChangeAt } = sessionAt((await loadCalendars(db)).NYSE, now)
    const next = nextChangeAt === null ? 'no change known' : `next change ${timeOfMillis(nextChangeAt)}`
    console.log(`NYSE: ${isOpen ? 'open' : 'closed'} at ${timeOfMillis(now)}, ${next}`)
    for (const { day, hours, reason } of await loadExceptions(db))
      console.log(
        `  ${dayText(day)}  ${hoursText(hours)} (${reason}) instead of ${hoursText(nyseHours(day))}`,
      )
    const markets = await db
      .selectFrom('markets')
      .select(['symbol', 'calendar'])
      .orderBy('market_id')
      .execute()
    for (const { symbol, calendar } of markets) console.log(`${symbol}: calendar ${calendar ?? 'none'}`)
  },
})

const add = command({
  help: 'adds an exception, or replaces the one of its date',
  flags: {
    ...STACK,
    ...DATE,
    hours: required(
      text('<closed | HH:MM-HH:MM>', 'what replaces the hours of the date, within 09:30-16:00'),
    ),
    reason: required(text('<text>', 'why the hours differ, shown to operators')),
    ...SEND,
  },
  async run({ db }, { date, hours, reason, send }) {
    const exception = { day: dateOf(date), hours: hoursOf(hours), reason: reasonOf(reason) }
    const replaced = exceptionOf(await loadExceptions(db), exception.day)
    const before = hoursText(replaced === undefined ? nyseHours(exception.day) : replaced.hours)
    const after = `${hoursText(exception.hours)} (${exception.reason})`
    await change(`NYSE ${dayText(exception.day)}: ${after} instead of ${before}`, send, async () =>
      putException(db, exception, await readClock(db)),
    )
  },
})

const remove = command({
  help: 'removes an exception, so that the rules apply to its date again',
  flags: { ...STACK, ...DATE, ...SEND },
  async run({ db }, { date, send }) {
    const day = dateOf(date)
    const exceptions = await loadExceptions(db)
    const removed = exceptionOf(exceptions, day)
    if (removed === undefined) {
      const dates = exceptions.map((each) => dayText(each.day)).join(', ') || 'there is none'
      throw new OpsError(`--date must be the date of an exception (${dates}); received ${dayText(day)}`)
    }
    const rule = hoursText(nyseHours(day))
    await change(
      `NYSE ${dayText(day)}: ${rule} by the rules instead of ${hoursText(removed.hours)}`,
      send,
      () => removeException(db, day),
    )
  },
})

const assign = command({
  help: 'sets the calendar that a market follows',
  flags: {
    ...STACK,
    market: required(text('<symbol>', 'symbol of the market')),
    calendar: required(oneOf([...CALENDAR_NAMES, 'none'], 'the calendar; none: it trades around the clock')),
    ...SEND,
  },
  async run({ db, settings }, { market: symbol, calendar, send }) {
    const markets = await db
      .selectFrom('markets')
      .select(['market_id', 'symbol', 'calendar', 'spec'])
      .orderBy('market_id')
      .execute()
    const market = markets.find((each) => each.symbol === symbol)
    if (market === undefined) {
      const symbols = markets.map((each) => each.symbol).join(', ')
      throw new OpsError(`--market must be one of ${symbols}; received ${symbol}`)
    }
    if (calendar === 'none' && market.spec.fundingSession === true)
      throw new OpsError(
        `--calendar must be one of ${CALENDAR_NAMES.join(', ')}, because the contract of ${symbol} needs sessions; received none`,
      )
    await change(`${symbol}: calendar ${calendar} instead of ${market.calendar ?? 'none'}`, send, () =>
      settings.setCalendar(market.market_id as MarketId, calendar === 'none' ? null : calendar),
    )
  },
})

export const CALENDAR_COMMANDS = { show, add, remove, assign } as const

/** Runs one command. `flags` are its own. */
export async function runCalendarCommand(
  name: keyof typeof CALENDAR_COMMANDS,
  flags: Arguments<typeof STACK>,
  env: Env,
): Promise<void> {
  const run = CALENDAR_COMMANDS[name].run as (on: DatabaseConnection, flags: unknown) => Promise<void>
  await onDatabase(flags.stack ?? null, env, (connection) => run(connection, flags))
}

/**
 * `npm run set-calendar`: shows and edits the trading calendars in the database at DATABASE_URL. The connection must be the owner's. Without
 * `--send` it writes nothing.
 */
import { dayText, parseDay } from '../domain/market/civil-day.ts'
import { type Hours, nyseHours } from '../domain/market/nyse-hours.ts'
import { areExceptionHours, CALENDAR_NAMES, sessionAt } from '../domain/market/trading-calendar.ts'
import type { Day, MarketId } from '../domain/units.ts'
import { argumentsOf, oneOf, rejectArguments, text, toggle, UsageError } from '../service/command-line.ts'
import { loadExceptions, putException, removeException, type StoredException } from './calendar-exceptions.ts'
import { createDb, createPool, type Db } from './client.ts'
import { readClock } from './clock.ts'
import { ownerDatabaseUrl } from './config.ts'
import { setCalendar } from './markets.ts'
import { checkSchema } from './migrator.ts'
import { loadCalendars, RELOAD_MS } from './trading-calendars.ts'

const LINE = {
  command: 'npm run set-calendar --',
  positionals: '<show | add | remove | assign>',
  flags: {
    date: text('<YYYY-MM-DD>', 'add, remove: the date of the exception'),
    hours: text(
      '<closed | HH:MM-HH:MM>',
      'add: what replaces the hours of the date, within 09:30-16:00 New York time',
    ),
    reason: text('<text>', 'add: why the hours differ, shown to operators'),
    market: text('<symbol>', 'assign: symbol of the market'),
    calendar: oneOf([...CALENDAR_NAMES, 'none'], 'assign: the calendar that the market follows'),
    send: toggle('write the change; without it the command only prints it'),
  },
} as const
const MAX_REASON = 200

const input = argumentsOf(LINE)
const reject = (problem: string): never => rejectArguments(LINE, problem)

const minuteText = (minute: number): string =>
  `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`
const hoursText = (hours: Hours | null): string =>
  hours === null ? 'closed' : `${minuteText(hours.opens)}-${minuteText(hours.closes)}`

function readDate(): Day {
  const day = input.date === undefined ? null : parseDay(input.date)
  return day ?? reject(`--date must be a date such as 2026-11-27, not ${input.date ?? 'missing'}`)
}

function readHours(): Hours | null {
  if (input.hours === 'closed') return null
  const match = /^(\d\d):([0-5]\d)-(\d\d):([0-5]\d)$/.exec(input.hours ?? '')
  const [openHour, openMinute, closeHour, closeMinute] = (match ?? []).slice(1).map(Number)
  const hours = {
    opens: (openHour ?? Number.NaN) * 60 + (openMinute ?? 0),
    closes: (closeHour ?? Number.NaN) * 60 + (closeMinute ?? 0),
  }
  if (areExceptionHours(hours)) return hours
  return reject(
    `--hours must be closed, or within 09:30-16:00 as 09:30-13:00, not ${input.hours ?? 'missing'}`,
  )
}

function readReason(): string {
  const { reason = '' } = input
  if (reason.length > 0 && reason.length <= MAX_REASON) return reason
  return reject(`--reason must be a text of 1 to ${MAX_REASON} characters, not of ${reason.length}`)
}

interface Change {
  readonly description: string
  readonly write: (db: Db) => Promise<void>
}

const exceptionOf = (exceptions: readonly StoredException[], day: Day): StoredException | undefined =>
  exceptions.find((each) => each.day === day)

async function addition(db: Db): Promise<Change> {
  const exception = { day: readDate(), hours: readHours(), reason: readReason() }
  const replaced = exceptionOf(await loadExceptions(db), exception.day)
  const before = hoursText(replaced === undefined ? nyseHours(exception.day) : replaced.hours)
  return {
    description: `NYSE ${dayText(exception.day)}: ${hoursText(exception.hours)} (${exception.reason}) instead of ${before}`,
    write: async () => putException(db, exception, await readClock(db)),
  }
}

async function removal(db: Db): Promise<Change> {
  const day = readDate()
  const exceptions = await loadExceptions(db)
  const removed = exceptionOf(exceptions, day)
  if (removed === undefined) {
    const dates = exceptions.map((each) => dayText(each.day)).join(', ')
    return reject(`--date must be the date of an exception (${dates}), not ${dayText(day)}`)
  }
  return {
    description: `NYSE ${dayText(day)}: ${hoursText(nyseHours(day))} by the rules instead of ${hoursText(removed.hours)}`,
    write: () => removeException(db, day),
  }
}

async function assignment(db: Db): Promise<Change> {
  const markets = await db
    .selectFrom('markets')
    .select(['market_id', 'symbol', 'calendar', 'spec'])
    .orderBy('market_id')
    .execute()
  const market = markets.find(({ symbol }) => symbol === input.market)
  if (market === undefined) {
    const symbols = markets.map(({ symbol }) => symbol).join(', ')
    return reject(`--market must be one of ${symbols}, not ${input.market ?? 'missing'}`)
  }
  if (input.calendar === undefined) return reject('--calendar is required')
  const calendar = input.calendar === 'none' ? null : input.calendar
  if (calendar === null && market.spec.fundingSession === true)
    return reject(
      `--calendar must be one of ${CALENDAR_NAMES.join(', ')}: the contract of ${market.symbol} needs sessions`,
    )
  return {
    description: `${market.symbol}: calendar ${input.calendar} instead of ${market.calendar ?? 'none'}`,
    write: () => setCalendar(db, market.market_id as MarketId, calendar),
  }
}

async function show(db: Db): Promise<void> {
  const now = await readClock(db)
  const { isOpen, nextChangeAt } = sessionAt((await loadCalendars(db)).NYSE, now)
  const change =
    nextChangeAt === null ? 'no change known' : `next change ${new Date(nextChangeAt).toISOString()}`
  console.log(`NYSE: ${isOpen ? 'open' : 'closed'} at ${new Date(now).toISOString()}, ${change}`)
  for (const { day, hours, reason } of await loadExceptions(db))
    console.log(`  ${dayText(day)}  ${hoursText(hours)} (${reason}) instead of ${hoursText(nyseHours(day))}`)
  const markets = await db.selectFrom('markets').select(['symbol', 'calendar']).orderBy('market_id').execute()
  for (const { symbol, calendar } of markets) console.log(`${symbol}: calendar ${calendar ?? 'none'}`)
}

const CHANGES = { add: addition, remove: removal, assign: assignment } as const

async function run(db: Db): Promise<void> {
  const [command, ...rest] = input.positionals
  if (command === undefined || rest.length > 0) return reject('exactly one command is required')
  if (command !== 'show' && !Object.hasOwn(CHANGES, command)) return reject(`unknown command ${command}`)
  await checkSchema(db)
  if (command === 'show') return show(db)
  const { description, write } = await CHANGES[command as keyof typeof CHANGES](db)
  console.log(description)
  if (!input.send)
    return console.log('Dry run: nothing was written. Repeat the command with --send to write it.')
  await write(db)
  console.log(`Written. Running processes apply it within ${RELOAD_MS / 1000} s.`)
}

try {
  const url = ownerDatabaseUrl('edit')
  const db = createDb(createPool({ url, connections: 1, name: 'clearbatch set-calendar' }))
  try {
    await run(db)
  } finally {
    await db.destroy()
  }
} catch (error) {
  const isUsage = error instanceof UsageError
  console.error(isUsage ? error.message : `set-calendar: ${(error as Error).message}`)
  process.exitCode = isUsage ? error.exitCode : 1
}

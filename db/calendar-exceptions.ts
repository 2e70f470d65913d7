/** The `calendar_exceptions` table: dates on which a trading calendar differs from its rules. Operators edit it. */
import { sql } from 'kysely'
import { dayText, parseDay } from '../domain/market/civil-day.ts'
import type { CalendarException } from '../domain/market/trading-calendar.ts'
import type { Day, Millis } from '../domain/units.ts'
import type { Db } from './client.ts'

export interface StoredException extends CalendarException {
  readonly reason: string
}

/** The only calendar with rules, and therefore with exceptions. */
const CALENDAR = 'NYSE'

/** By date. */
export async function loadExceptions(db: Db): Promise<StoredException[]> {
  const rows = await db
    .selectFrom('calendar_exceptions')
    .select([sql<string>`day::text`.as('day'), 'opens', 'closes', 'reason'])
    .where('calendar', '=', CALENDAR)
    .orderBy('day')
    .execute()
  return rows.map(({ day, opens, closes, reason }) => ({
    day: parseDay(day) as Day,
    hours: opens === null || closes === null ? null : { opens, closes },
    reason,
  }))
}

/** Adds an exception, or replaces the exception of its date. */
export async function putException(
  db: Db,
  { day, hours, reason }: StoredException,
  now: Millis,
): Promise<void> {
  const row = { opens: hours?.opens ?? null, closes: hours?.closes ?? null, reason, created_at: now }
  await db
    .insertInto('calendar_exceptions')
    .values({ calendar: CALENDAR, day: dayText(day), ...row })
    .onConflict((conflict) => conflict.columns(['calendar', 'day']).doUpdateSet(row))
    .execute()
}

export async function removeException(db: Db, day: Day): Promise<void> {
  await db
    .deleteFrom('calendar_exceptions')
    .where('calendar', '=', CALENDAR)
    .where('day', '=', dayText(day))
    .execute()
}

/** The trading calendars with the exceptions of the database, for processes that follow sessions. */
import {
  ALWAYS_OPEN,
  type CalendarName,
  nyseCalendar,
  type TradingCalendar,
} from '../domain/market/trading-calendar.ts'
import { type Clock, elapsed } from '../service/clock.ts'
import { newYorkTime } from '../service/new-york-time.ts'
import { loadExceptions } from './calendar-exceptions.ts'
import type { Db } from './client.ts'

export type TradingCalendars = Readonly<Record<CalendarName, TradingCalendar>>

export interface CalendarCache {
  /** At most `RELOAD_MS` old. Fails if the database does. */
  current(): Promise<TradingCalendars>
}

/** A process applies an edited exception after at most this time, without a restart. */
export const RELOAD_MS = 5_000

export const loadCalendars = async (db: Db): Promise<TradingCalendars> => ({
  NYSE: nyseCalendar(await loadExceptions(db), newYorkTime),
  ALWAYS_OPEN,
})

export function createCalendarCache(db: Db, clock: Clock): CalendarCache {
  let loaded: { readonly calendars: TradingCalendars; readonly at: number } | null = null
  let loading: Promise<TradingCalendars> | null = null

  const load = async (): Promise<TradingCalendars> => {
    // The age counts from before the statement, so that an edit which it missed is not missed for longer.
    const at = clock.now()
    const calendars = await loadCalendars(db)
    loaded = { calendars, at }
    return calendars
  }

  return {
    async current() {
      if (loaded !== null && elapsed(clock, loaded.at) < RELOAD_MS) return loaded.calendars
      loading ??= load().finally(() => {
        loading = null
      })
      return loading
    },
  }
}

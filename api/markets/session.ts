/** The trading session of a market's underlying, as the answers on markets show it. */
import { sessionAt, type TradingCalendar } from '../../domain/market/trading-calendar.ts'
import type { Millis } from '../../domain/units.ts'
import { maybeTime } from '../wire/amounts.ts'
import { nullable, Time, words } from '../wire/schema.ts'

const SESSIONS = ['regular', 'closed', 'continuous'] as const

export const sessionFields = {
  session: words(
    SESSIONS,
    'Trading session of the underlying: regular (open), closed (the oracle price repeats the last regular price, and no funding ' +
      'accrues), or continuous (trades around the clock).',
  ),
  next_session_change: nullable(
    Time(
      'Time of the next opening or closing of the session by the trading calendar; null if none is known.',
    ),
  ),
}

/** `calendar` is null if the underlying trades around the clock. */
export function sessionView(calendar: TradingCalendar | null, now: Millis) {
  if (calendar === null) return { session: 'continuous', next_session_change: null } as const
  const { isOpen, nextChangeAt } = sessionAt(calendar, now)
  return { session: isOpen ? 'regular' : 'closed', next_session_change: maybeTime(nextChangeAt) } as const
}

/**
 * The price that the index feed of a market with a trading calendar reports: regular prices only, repeated
 * between sessions.
 */
import { sessionAt, type TradingCalendar } from '../market/trading-calendar.ts'
import type { Millis, Price } from '../units.ts'

/** A price, and the time at which it was observed. */
export interface ObservedPrice {
  readonly price: Price
  readonly observedAt: Millis
}

/**
 * What the index feed reports at `at`; null: nothing. `reading` is what the sources agree on, `last` the
 * feed's last report, or before the first one the previous close, if a source names it.
 *
 * Within a session only a reading of that session counts: after the opening, the close of the day before
 * would be a wrong price. Outside a session the last regular price is repeated as of `at`, so that the report
 * stays fresh. It is the reading if it was observed within a session after `last`: the last one before the
 * close, or one that was missed while no publisher ran. Otherwise it is `last`, because the feed never
 * reports anything but regular prices.
 */
export function regularPrice(
  calendar: TradingCalendar,
  at: Millis,
  reading: ObservedPrice | null,
  last: ObservedPrice | null,
): ObservedPrice | null {
  const running = sessionAt(calendar, at)
  const readingSession = reading === null ? null : sessionAt(calendar, reading.observedAt)
  if (running.isOpen) return readingSession?.endsAt === running.endsAt ? reading : null
  const isNewer = readingSession?.isOpen === true && (last === null || reading!.observedAt > last.observedAt)
  const regular = isNewer ? reading : last
  return regular && { price: regular.price, observedAt: at }
}

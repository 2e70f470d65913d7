/** New York time from the time-zone database of Node.js (ICU). */
import type { LocalTime } from '../domain/market/trading-calendar.ts'
import type { Millis } from '../domain/units.ts'

/** Formats the offset as `GMT-05:00`. */
const FORMAT = new Intl.DateTimeFormat('en-US', { timeZone: 'America/New_York', timeZoneName: 'longOffset' })

const MINUTE = 60_000
const MINUTES_PER_DAY = 1_440

/** Milliseconds of New York's offset from UTC at `at`; negative. */
function offsetAt(at: number): number {
  const printed = FORMAT.formatToParts(at).find(({ type }) => type === 'timeZoneName')?.value ?? ''
  const [, sign, hours, minutes] = /^GMT([+-])(\d\d):(\d\d)$/.exec(printed) ?? []
  if (hours === undefined) throw new Error(`New York's offset must print as GMT-05:00, not "${printed}"`)
  return (Number(hours) * 60 + Number(minutes)) * MINUTE * (sign === '-' ? -1 : 1)
}

/** Maximum cached times. */
const MAX_KNOWN = 1_000
/**
 * Cache by minute of New York time. Formatting is slow (20 µs), and the same few openings and closings recur.
 */
const known = new Map<number, Millis>()

/**
 * Converts with two offsets, which differ only on days of a clock change. A time that clocks skip or repeat (01:00 to
 * 03:00) has no defined result; no session starts or ends there.
 */
function convert(minutes: number): Millis {
  const asUtc = minutes * MINUTE
  const estimate = asUtc - offsetAt(asUtc)
  return (asUtc - offsetAt(estimate)) as Millis
}

export const newYorkTime: LocalTime = (day, minute) => {
  const minutes = day * MINUTES_PER_DAY + minute
  const before = known.get(minutes)
  if (before !== undefined) return before
  if (known.size >= MAX_KNOWN) known.clear()
  const converted = convert(minutes)
  known.set(minutes, converted)
  return converted
}

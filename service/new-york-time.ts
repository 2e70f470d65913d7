/** New York time by the time-zone database that Node.js contains (ICU). */
import type { LocalTime } from '../domain/market/trading-calendar.ts'
import type { Millis } from '../domain/units.ts'

/** Prints the offset as `GMT-05:00`. */
const FORMAT = new Intl.DateTimeFormat('en-US', { timeZone: 'America/New_York', timeZoneName: 'longOffset' })

const MINUTE = 60_000
const DAY = 1_440 * MINUTE

/** Milliseconds by which New York's clocks are ahead of UTC at a time; negative. */
function offsetAt(at: number): number {
  const printed = FORMAT.formatToParts(at).find(({ type }) => type === 'timeZoneName')?.value ?? ''
  const [, sign, hours, minutes] = /^GMT([+-])(\d\d):(\d\d)$/.exec(printed) ?? []
  if (hours === undefined) throw new Error(`New York's offset must print as GMT-05:00, not "${printed}"`)
  return (Number(hours) * 60 + Number(minutes)) * MINUTE * (sign === '-' ? -1 : 1)
}

/**
 * The first offset is that of a time a few hours earlier, the second that of the result. Both differ only on
 * the days on which clocks change. A time that clocks skip or repeat then (02:00 to 03:00, 01:00 to 02:00)
 * has no defined result; no session begins or ends there.
 */
export const newYorkTime: LocalTime = (day, minute) => {
  const asUtc = day * DAY + minute * MINUTE
  const estimate = asUtc - offsetAt(asUtc)
  return (asUtc - offsetAt(estimate)) as Millis
}

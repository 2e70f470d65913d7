/** Candle intervals, and the stored lengths of candles. All times are UTC milliseconds. */
import type { Millis } from '../units.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const WEEK = 7 * DAY
/** The first Monday after the epoch. */
const FIRST_MONDAY = 4 * DAY

export const INTERVALS = {
  ...{ '1m': MINUTE, '3m': 3 * MINUTE, '5m': 5 * MINUTE, '15m': 15 * MINUTE, '30m': 30 * MINUTE },
  ...{ '1h': HOUR, '2h': 2 * HOUR, '4h': 4 * HOUR, '8h': 8 * HOUR, '12h': 12 * HOUR },
  ...{ '1d': DAY, '1w': WEEK },
} as const

export type Interval = keyof typeof INTERVALS

/**
 * Lengths of stored rows, ascending; each divides the next.
 * An interval consists of at most 7 rows of the longest length that divides it: a week is 7 days.
 */
export const SPANS = [MINUTE, 5 * MINUTE, 30 * MINUTE, 4 * HOUR, DAY] as const

export type Span = (typeof SPANS)[number]

/** The longest stored length that divides the interval. */
export const spanOf = (interval: Interval): Span =>
  SPANS.findLast((span) => INTERVALS[interval] % span === 0) as Span

/** Start of the stored row that contains `at`. */
export const spanStart = (span: Span, at: number): number => at - (at % span)

/**
 * Start of the interval that contains `at`. Weeks start on Monday; all other intervals are counted from
 * midnight.
 */
export function intervalStart(interval: Interval, at: number): Millis {
  const length = INTERVALS[interval]
  const offset = interval === '1w' ? FIRST_MONDAY : 0
  return (Math.floor((at - offset) / length) * length + offset) as Millis
}

/** First interval start at or after `at`. */
export const nextIntervalStart = (interval: Interval, at: number): Millis => {
  const start = intervalStart(interval, at)
  return start === at ? start : ((start + INTERVALS[interval]) as Millis)
}

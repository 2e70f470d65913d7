/**
 * Aggregates a feed's readings to their median, or to the reason why there is no value. If fewer than half are wrong,
 * the median lies within the range of the correct readings.
 */
import { abs, type Millis } from '../units.ts'
import type { AbsenceReason, ValueRange } from './feed.ts'

/** A source's reading: a price or another feed value, and its observation time. */
export interface Reading {
  readonly price: bigint
  readonly observedAt: Millis
  /** Aggregator round of the reading: the proof of a report at an AggregatorOracle. */
  readonly round?: `0x${string}`
}

/**
 * A source's time in milliseconds, rounded down; null if no clock can have this time.
 * Sources can send any number, and readings are shown and stored even if they are dropped.
 */
export const observationTime = (millis: number): Millis | null =>
  millis >= 0 && millis < 2 ** 48 ? (Math.floor(millis) as Millis) : null

/** Reasons why a reading is dropped. The list is closed. */
export const DROP_REASONS = [
  /** The source returned no reading; `detail` states the cause. */
  'NO_READING',
  'NOT_POSITIVE',
  /** The value is outside the range that the market's contract accepts. */
  'OUT_OF_RANGE',
  /** The reading is older than the source's maximum age. */
  'STALE',
  /** The observation time is ahead of now by more than the tolerated clock difference. */
  'FUTURE',
  /** The observation precedes the source's previous reading. */
  'OUT_OF_ORDER',
  /** The price differs from the source's previous reading of the same time. */
  'CONTRADICTORY',
  /**
   * The observation precedes the running trading session of the underlying; for a final price, the market's
   * close.
   */
  'TOO_EARLY',
  /** The distance to the median exceeds the source's bound. */
  'OUTLIER',
] as const
export type DropReason = (typeof DROP_REASONS)[number]

/** Result of reading one source. */
export interface SourceAnswer {
  readonly source: string
  /** Null if the source returned none. */
  readonly reading: Reading | null
  /** Fault that prevented a reading. */
  readonly fault: string | null
}

export interface SourceBounds {
  readonly maxAge: Millis
  /** Largest distance from the median, in millionths of the median. */
  readonly maxDeviation: bigint
}

export interface AggregationRules {
  readonly range: ValueRange
  /**
   * Whether readings from 0 up to the range count as its lowest value (`isFloored`).
   * A round cannot be raised: the oracle compares its value.
   */
  readonly isFloored: boolean
  /** Minimum number of agreeing readings. */
  readonly minimum: number
  /** Largest distance between two agreeing readings, in millionths of the median. */
  readonly maxSpread: bigint
  /** Largest lead of a source's clock. */
  readonly maxAhead: Millis
  /** Earliest observation time that counts (`reading-window.ts`). */
  readonly since: Millis
  readonly boundsOf: (source: string) => SourceBounds
  /** The source's previous usable reading; null if there is none. */
  readonly previousOf: (source: string) => Reading | null
}

/** A reading with its verdict, stored as evidence with the report. */
export interface JudgedReading {
  readonly source: string
  readonly reading: Reading | null
  /** Drop reason; null if the reading counts. */
  readonly dropped: DropReason | null
  readonly detail: string | null
}

export type Aggregate = {
  /** Readings in the order of the answers. */
  readonly readings: readonly JudgedReading[]
} & (
  | { readonly value: bigint; readonly reason: null }
  | { readonly value: null; readonly reason: AbsenceReason }
)

export function aggregate(answers: readonly SourceAnswer[], rules: AggregationRules, now: Millis): Aggregate {
  const guarded = answers.map((answer) => guard(answer, rules, now))
  const usable = guarded.filter(isUsed).map(({ reading }) => reading.price)
  if (usable.length < rules.minimum || usable.length === 0)
    return { readings: guarded, value: null, reason: 'TOO_FEW_SOURCES' }
  const value = median(usable)
  const near = guarded.map((one) => dropOutlier(one, value, rules))
  const { readings, isNarrow } = narrow(near, value, rules.maxSpread)
  const agreeing = readings.filter(isUsed).length
  const agree = isNarrow && agreeing >= rules.minimum && 2 * agreeing > usable.length
  return agree ? { readings, value, reason: null } : { readings, value: null, reason: 'SOURCES_DISAGREE' }
}

type UsedReading = JudgedReading & { readonly reading: Reading }

const isUsed = (judged: JudgedReading): judged is UsedReading =>
  judged.dropped === null && judged.reading !== null

function guard(
  { source, reading, fault }: SourceAnswer,
  rules: AggregationRules,
  now: Millis,
): JudgedReading {
  if (reading === null) return { source, reading, dropped: 'NO_READING', detail: fault }
  const counted = rules.isFloored ? raisedTo(rules.range.low, reading) : reading
  return { source, reading: counted, dropped: dropReason(source, counted, rules, now), detail: fault }
}

const raisedTo = (lowest: bigint, reading: Reading): Reading =>
  reading.price >= 0n && reading.price < lowest && reading.round === undefined
    ? { ...reading, price: lowest }
    : reading

function dropReason(
  source: string,
  { price, observedAt }: Reading,
  { range, maxAhead, since, boundsOf, previousOf }: AggregationRules,
  now: Millis,
): DropReason | null {
  if (price < range.low) return price <= 0n ? 'NOT_POSITIVE' : 'OUT_OF_RANGE'
  if (price > range.high) return 'OUT_OF_RANGE'
  if (observedAt - now > maxAhead) return 'FUTURE'
  if (now - observedAt > boundsOf(source).maxAge) return 'STALE'
  if (observedAt < since) return 'TOO_EARLY'
  const previous = previousOf(source)
  if (previous === null || observedAt > previous.observedAt) return null
  if (observedAt < previous.observedAt) return 'OUT_OF_ORDER'
  return price === previous.price ? null : 'CONTRADICTORY'
}

/** Runs after the median is computed: a median of the remaining readings could leave the range of the correct readings. */
function dropOutlier(judged: JudgedReading, value: bigint, { boundsOf }: AggregationRules): JudgedReading {
  if (!isUsed(judged)) return judged
  const distance = abs(judged.reading.price - value)
  return isWithin(distance, value, boundsOf(judged.source).maxDeviation)
    ? judged
    : { ...judged, dropped: 'OUTLIER' }
}

interface Narrowed {
  readonly readings: readonly JudgedReading[]
  /** Whether the remaining readings are within the spread. */
  readonly isNarrow: boolean
}

/**
 * Drops the farthest reading until the rest is within the spread, so that one faulty source cannot block the feed. Two equally far readings stay: it is unknown which reading is wrong.
 */
function narrow(readings: readonly JudgedReading[], value: bigint, maxSpread: bigint): Narrowed {
  const used = readings.filter(isUsed)
  if (isWithin(spreadOf(used.map(({ reading }) => reading.price)), value, maxSpread))
    return { readings, isNarrow: true }
  const distanceOf = ({ reading }: UsedReading): bigint => abs(reading.price - value)
  const [farthest, next] = used.toSorted((a, b) => ascending(distanceOf(b), distanceOf(a)))
  if (farthest === undefined || next === undefined || distanceOf(farthest) === distanceOf(next))
    return { readings, isNarrow: false }
  const others = readings.map((one) => (one === farthest ? { ...one, dropped: 'OUTLIER' as const } : one))
  return narrow(others, value, maxSpread)
}

const MILLION = 1_000_000n

const isWithin = (distance: bigint, value: bigint, millionths: bigint): boolean =>
  distance * MILLION <= value * millionths

/** Median; for an even count the mean of the two middle values, rounded down. */
function median(values: readonly bigint[]): bigint {
  const sorted = [...values].sort(ascending)
  const middle = sorted.length >> 1
  const high = sorted[middle] as bigint
  return sorted.length % 2 === 1 ? high : ((sorted[middle - 1] as bigint) + high) / 2n
}

const ascending = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0)

/** Spread of the values; 0 without values. */
function spreadOf(values: readonly bigint[]): bigint {
  const sorted = [...values].sort(ascending)
  return (sorted.at(-1) ?? 0n) - (sorted[0] ?? 0n)
}

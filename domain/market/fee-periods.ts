/**
 * Fee periods: spans in which a market charges less than the highest rates of its contract.
 * They are stored off chain, because the operator chooses each batch's rates up to the highest.
 */
import { type Millis, minOf, type Rate } from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'
import type { FeeRates } from './fees.ts'
import type { MarketSpec } from './market.ts'

/** Applies to batches with `asOf` >= `from` and < `until`; null: until further notice. */
export interface FeePeriod extends FeeRates {
  readonly from: Millis
  readonly until: Millis | null
}

/** Periods, ascending and without overlap. */
export type FeeSchedule = readonly FeePeriod[]

/** One day, as for every other change to the disadvantage of traders. A lower rate needs no notice. */
export const FEE_NOTICE = 86_400_000 as Millis
/** Maximum number of periods; every auction reads all of them. */
export const MAX_FEE_PERIODS = 16

export const periodAt = (schedule: FeeSchedule, at: Millis): FeePeriod | null =>
  schedule.find(({ from, until }) => from <= at && (until === null || at < until)) ?? null

/** Rates that a batch charges at `at`: the rates of the period, capped at the highest in force. */
export function chargedAt(highest: FeeRates, schedule: FeeSchedule, at: Millis): FeeRates {
  const { makerFee, takerFee } = periodAt(schedule, at) ?? highest
  return { makerFee: minOf(makerFee, highest.makerFee), takerFee: minOf(takerFee, highest.takerFee) }
}

/** Specification with the charged rates in place of the highest rates. */
export const chargingSpec = (spec: MarketSpec, schedule: FeeSchedule, at: Millis): MarketSpec =>
  schedule.length === 0 ? spec : { ...spec, ...chargedAt(spec, schedule, at) }

/** An operator's request: rates for a span of time; null removes the periods in the span. */
export interface FeeChange {
  readonly rates: FeeRates | null
  readonly from: Millis
  readonly until: Millis | null
}

export type FeeRefusal =
  | { readonly code: 'SPAN_EMPTY'; readonly from: Millis; readonly until: Millis }
  | { readonly code: 'FROM_PAST'; readonly earliest: Millis }
  /** A rate is above the highest, negative, or not a multiple of one millionth. */
  | { readonly code: 'RATE_INVALID'; readonly field: keyof FeeRates; readonly highest: Rate }
  /** A rate would rise with less than a day's notice. */
  | { readonly code: 'NOTICE_TOO_SHORT'; readonly field: keyof FeeRates; readonly earliest: Millis }
  | { readonly code: 'TOO_MANY_PERIODS'; readonly most: number }

const MILLIONTH = 10n ** 12n
const FIELDS = ['makerFee', 'takerFee'] as const

/**
 * The schedule after a change announced at `now`, or why the change is rejected.
 * The change replaces overlapping periods, and past periods are dropped.
 */
export function changeFees(
  highest: FeeRates,
  schedule: FeeSchedule,
  change: FeeChange,
  now: Millis,
): Verdict<FeeSchedule, FeeRefusal> {
  const { rates, from, until } = change
  if (from < now) return refuse({ code: 'FROM_PAST', earliest: now })
  if (until !== null && until <= from) return refuse({ code: 'SPAN_EMPTY', from, until })
  const invalid = rates && FIELDS.find((field) => !isValidRate(rates[field], highest[field]))
  if (invalid) return refuse({ code: 'RATE_INVALID', field: invalid, highest: highest[invalid] })
  const running = schedule.filter((period) => period.until === null || period.until > now)
  const added = rates === null ? [] : [{ ...rates, from, until }]
  const next = [...running.flatMap((period) => outside(period, change)), ...added].sort(
    (a, b) => a.from - b.from,
  )
  if (next.length > MAX_FEE_PERIODS) return refuse({ code: 'TOO_MANY_PERIODS', most: MAX_FEE_PERIODS })
  const earliest = (now + FEE_NOTICE) as Millis
  const risen = FIELDS.find((field) =>
    edgesBefore([running, next], now, earliest).some(
      (at) => chargedAt(highest, next, at)[field] > chargedAt(highest, schedule, at)[field],
    ),
  )
  return risen ? refuse({ code: 'NOTICE_TOO_SHORT', field: risen, earliest }) : accept(next)
}

const isValidRate = (rate: Rate, highest: Rate): boolean =>
  rate >= 0n && rate <= highest && rate % MILLIONTH === 0n

/** Parts of the period outside a span: at most one before it and one after it. */
function outside(period: FeePeriod, span: Pick<FeeChange, 'from' | 'until'>): FeePeriod[] {
  const ends = period.until ?? Number.POSITIVE_INFINITY
  const spanEnds = span.until ?? Number.POSITIVE_INFINITY
  if (ends <= span.from || spanEnds <= period.from) return [period]
  const before = period.from < span.from ? [{ ...period, until: span.from }] : []
  const behind = spanEnds < ends ? [{ ...period, from: span.until as Millis }] : []
  return [...before, ...behind]
}

/** Start and end times of all periods; rates are constant between two of these times. */
function edgesBefore(schedules: readonly FeeSchedule[], now: Millis, end: Millis): Millis[] {
  const edges = schedules.flat().flatMap(({ from, until }) => (until === null ? [from] : [from, until]))
  return [now, ...edges.filter((at) => at > now && at < end)]
}

/** Next time after `at` at which the charged rates change; null if no change is announced. */
export function nextFeeChange(
  highest: FeeRates,
  schedule: FeeSchedule,
  at: Millis,
): { readonly at: Millis; readonly rates: FeeRates } | null {
  const now = chargedAt(highest, schedule, at)
  const edges = schedule.flatMap(({ from, until }) => (until === null ? [from] : [from, until]))
  for (const edge of edges.filter((time) => time > at).sort((a, b) => a - b)) {
    const rates = chargedAt(highest, schedule, edge)
    if (FIELDS.some((field) => rates[field] !== now[field])) return { at: edge, rates }
  }
  return null
}

// ---------------------------------------------------------------------- as JSON

export interface StoredFeePeriod {
  readonly maker: string
  readonly taker: string
  readonly from: number
  readonly until: number | null
}

export const toStoredFees = (schedule: FeeSchedule): StoredFeePeriod[] =>
  schedule.map(({ makerFee, takerFee, from, until }) => ({
    ...{ maker: makerFee.toString(), taker: takerFee.toString(), from, until },
  }))

export const fromStoredFees = (stored: readonly StoredFeePeriod[]): FeeSchedule =>
  stored.map(({ maker, taker, from, until }) => ({
    makerFee: BigInt(maker) as Rate,
    takerFee: BigInt(taker) as Rate,
    from: from as Millis,
    until: until as Millis | null,
  }))

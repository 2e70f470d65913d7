/**
 * Periods in which a market charges other rates than the highest that its contract allows, such as none. They are kept off the chain: the
 * operator chooses the rates of each batch below the highest.
 */
import { type Millis, minOf, type Rate } from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'
import type { FeeRates } from './fees.ts'
import type { MarketSpec } from './market.ts'

/** In force for batches with `asOf` from `from` up to, but not including, `until`; null: until further notice. */
export interface FeePeriod extends FeeRates {
  readonly from: Millis
  readonly until: Millis | null
}

/** Ascending, without overlap. */
export type FeeSchedule = readonly FeePeriod[]

/** A day, as for the other changes to the disadvantage of traders. A lower rate needs no notice. */
export const FEE_NOTICE = 86_400_000 as Millis
/** Bounds what every auction reads. */
export const MAX_FEE_PERIODS = 16

export const periodAt = (schedule: FeeSchedule, at: Millis): FeePeriod | null =>
  schedule.find(({ from, until }) => from <= at && (until === null || at < until)) ?? null

/** The rates that a batch as of `at` charges: those of the period, and never more than the highest in force. */
export function chargedAt(highest: FeeRates, schedule: FeeSchedule, at: Millis): FeeRates {
  const { makerFee, takerFee } = periodAt(schedule, at) ?? highest
  return { makerFee: minOf(makerFee, highest.makerFee), takerFee: minOf(takerFee, highest.takerFee) }
}

/** The specification with the rates that a batch charges in place of the highest. */
export const chargingSpec = (spec: MarketSpec, schedule: FeeSchedule, at: Millis): MarketSpec =>
  schedule.length === 0 ? spec : { ...spec, ...chargedAt(spec, schedule, at) }

/** What an operator asks for: rates for a span of time; null ends the periods in it. */
export interface FeeChange {
  readonly rates: FeeRates | null
  readonly from: Millis
  readonly until: Millis | null
}

export type FeeRefusal =
  | { readonly code: 'SPAN_EMPTY'; readonly from: Millis; readonly until: Millis }
  | { readonly code: 'FROM_PAST'; readonly earliest: Millis }
  /** A rate is above the highest, negative, or no multiple of a millionth. */
  | { readonly code: 'RATE_INVALID'; readonly field: keyof FeeRates; readonly highest: Rate }
  /** Some rate would rise with less notice than a day. */
  | { readonly code: 'NOTICE_TOO_SHORT'; readonly field: keyof FeeRates; readonly earliest: Millis }
  | { readonly code: 'TOO_MANY_PERIODS'; readonly most: number }

const MILLIONTH = 10n ** 12n
const FIELDS = ['makerFee', 'takerFee'] as const

/** The schedule with the change, announced at `now`, or why it is rejected. Replaces what overlaps, and drops periods that are over. */
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

/** What is left of the period outside a span: at most a part before and a part behind it. */
function outside(period: FeePeriod, span: Pick<FeeChange, 'from' | 'until'>): FeePeriod[] {
  const ends = period.until ?? Number.POSITIVE_INFINITY
  const spanEnds = span.until ?? Number.POSITIVE_INFINITY
  if (ends <= span.from || spanEnds <= period.from) return [period]
  const before = period.from < span.from ? [{ ...period, until: span.from }] : []
  const behind = spanEnds < ends ? [{ ...period, from: span.until as Millis }] : []
  return [...before, ...behind]
}

/** Rates are constant between these times. */
function edgesBefore(schedules: readonly FeeSchedule[], now: Millis, end: Millis): Millis[] {
  const edges = schedules.flat().flatMap(({ from, until }) => (until === null ? [from] : [from, until]))
  return [now, ...edges.filter((at) => at > now && at < end)]
}

/** The next time after `at` from which other rates are charged; null if none is announced. */
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

/**
 * Funding of a perpetual: an index in wei per quantity step. Margins are folded with the index, so longs pay exactly
 * what shorts receive. Twin of the contract's FundingLib.
 */
import type { MarketSpec } from '../market/market.ts'
import {
  abs,
  type FundingIndex,
  type HourlyFunding,
  type Millis,
  maxOf,
  minOf,
  ONE,
  type Price,
  type Rate,
} from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'

export const HOUR = 3_600_000 as Millis

/** Longest validity of a rate. If the keeper stops, accrual stops when the rate ends. */
export const MAX_VALIDITY = HOUR

/**
 * Time in which a rate may move from one end of the cap to the other, as in dYdX's P1FundingOracle.
 * It bounds the slope, so that no update can jump.
 */
export const FULL_SWING = (45 * 60_000) as Millis

/**
 * Start bound: while no rate is valid, a new rate is within cap / 3 of zero.
 * Examples are the first update, an update after an outage, and the start of a session.
 */
const START_DIVISOR = 3n

const INDEX_END = 1n << 95n

/** `validFrom` is the `asOf` of the action that set the rate. */
export interface FundingRate {
  readonly rate: HourlyFunding
  readonly validFrom: Millis
  /** End of validity, exclusive. */
  readonly validUntil: Millis
}

/**
 * The rate that applies from the action's `asOf`, and the index at that time.
 * The action's report becomes the market's last report.
 */
export interface FundingUpdated extends FundingRate {
  readonly actionId: number
  readonly fundingIndex: FundingIndex
  readonly oraclePrice: Price
  readonly observedAt: Millis
}

/** The rate before the first update. */
export const NO_RATE: FundingRate = {
  rate: 0n as HourlyFunding,
  validFrom: 0 as Millis,
  validUntil: 0 as Millis,
}

/**
 * Index after accruing `running` from `from` to `to`: rate × overlap with its validity / 1 h, rounded towards zero.
 * Accrual in n intervals loses at most n - 1 wei per step.
 */
export function accrue(index: FundingIndex, running: FundingRate, from: Millis, to: Millis): FundingIndex {
  const overlap = minOf(to, running.validUntil) - maxOf(from, running.validFrom)
  return overlap > 0 ? ((index + accrued(running.rate, overlap)) as FundingIndex) : index
}

/** Wei per step in `millis`; bigint division rounds towards zero. */
const accrued = (rate: HourlyFunding, millis: number): bigint => (rate * BigInt(millis)) / BigInt(HOUR)

/** Market fields that funding uses. */
export type FundingTerms = Pick<MarketSpec, 'step' | 'fundingCap'>

/** Whether the market has funding. */
export const hasFunding = ({ kind, fundingCap }: Pick<MarketSpec, 'kind' | 'fundingCap'>): boolean =>
  kind === 'perpetual' && fundingCap > 0n

/** The cap in wei per step and hour at the oracle price, rounded down. */
export const fundingCapAt = ({ step, fundingCap }: FundingTerms, oracle: Price): HourlyFunding =>
  ((fundingCap * oracle * step) / (ONE * ONE)) as HourlyFunding

/** Rate as a fraction of the oracle price per hour, rounded towards zero. */
export const fractionOf = ({ step }: Pick<MarketSpec, 'step'>, rate: HourlyFunding, oracle: Price): Rate =>
  ((rate * ONE * ONE) / (oracle * step)) as Rate

export interface FundingBounds {
  readonly lowest: HourlyFunding
  readonly highest: HourlyFunding
}

/**
 * Inclusive bounds of the rates that may follow `running` at `asOf`; never empty. Within the cap, and within 2 × cap ×
 * elapsed / 45 min of the last rate.
 */
export function fundingBounds(
  terms: FundingTerms,
  running: FundingRate,
  oracle: Price,
  asOf: Millis,
): FundingBounds {
  const cap: bigint = fundingCapAt(terms, oracle)
  // A lower oracle price can move the cap below the last rate.
  const last = maxOf(-cap, minOf<bigint>(cap, running.rate))
  const elapsed = BigInt(asOf - running.validFrom)
  const swing = (2n * cap * elapsed) / BigInt(FULL_SWING)
  const isRunning = asOf < running.validUntil
  // Without a valid rate, cap / 3 around zero, as far as the swing allows.
  const reach = isRunning ? cap : maxOf(cap / START_DIVISOR, abs(last) - swing)
  return {
    lowest: maxOf(-reach, last - swing) as HourlyFunding,
    highest: minOf(reach, last + swing) as HourlyFunding,
  }
}

export interface FundingUpdate {
  readonly asOf: Millis
  readonly rate: HourlyFunding
  readonly validUntil: Millis
}

export interface FundingContext {
  readonly running: FundingRate
  /** Index at the update's `asOf`. */
  readonly index: FundingIndex
  readonly oracle: Price
  /**
   * End of the current session in milliseconds, 0 outside a session; null if funding accrues around the
   * clock.
   */
  readonly sessionEnd: Millis | null
}

export type FundingRefusal =
  | { readonly code: 'NOT_PERPETUAL' }
  | ({ readonly code: 'RATE_OUT_OF_RANGE'; readonly received: HourlyFunding } & FundingBounds)
  /** The end is not after `asOf`, or more than an hour after it. */
  | {
      readonly code: 'VALIDITY'
      readonly after: Millis
      readonly latest: Millis
      readonly received: Millis
    }
  | { readonly code: 'SESSION_CLOSED' }
  | { readonly code: 'PAST_SESSION_END'; readonly sessionEnd: Millis; readonly received: Millis }
  /** The index could exceed 96 bits before the rate ends. */
  | { readonly code: 'INDEX_OUT_OF_RANGE'; readonly index: FundingIndex }

/** Checks a new rate. Returns the rate that applies from `asOf`, or a refusal. */
export function setFunding(
  spec: FundingTerms & Pick<MarketSpec, 'kind'>,
  { asOf, rate, validUntil }: FundingUpdate,
  { running, index, oracle, sessionEnd }: FundingContext,
): Verdict<FundingRate, FundingRefusal> {
  if (spec.kind !== 'perpetual') return refuse({ code: 'NOT_PERPETUAL' })
  const latest = (asOf + MAX_VALIDITY) as Millis
  if (validUntil <= asOf || validUntil > latest) {
    return refuse({ code: 'VALIDITY', after: asOf, latest, received: validUntil })
  }
  if (sessionEnd !== null && sessionEnd <= asOf) return refuse({ code: 'SESSION_CLOSED' })
  if (sessionEnd !== null && validUntil > sessionEnd) {
    return refuse({ code: 'PAST_SESSION_END', sessionEnd, received: validUntil })
  }
  const bounds = fundingBounds(spec, running, oracle, asOf)
  if (rate < bounds.lowest || rate > bounds.highest) {
    return refuse({ code: 'RATE_OUT_OF_RANGE', received: rate, ...bounds })
  }
  if (abs(index + accrued(rate, validUntil - asOf)) >= INDEX_END) {
    return refuse({ code: 'INDEX_OUT_OF_RANGE', index })
  }
  return accept({ rate, validFrom: asOf, validUntil })
}

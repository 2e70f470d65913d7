/**
 * Funding of a perpetual: one index in wei per quantity step, which grows at a rate as long as the rate is valid. Positions keep
 * their margin folded with the index, so longs pay to the wei what shorts get. Twin of the contract's FundingLib.
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
} from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'

export const HOUR = 3_600_000 as Millis

/** No rate is valid for longer, so that a keeper who fails stops funding rather than freezing it. */
export const MAX_VALIDITY = HOUR

/** From one end of the cap to the other in this time, as dYdX's P1FundingOracle bounds it: no jump can be sprung on a position. */
export const FULL_SWING = (45 * 60_000) as Millis

/** Where no rate is running (the first one, after an outage, at a session's start), one starts within cap / 3 of zero. */
const START_DIVISOR = 3n

const INDEX_END = 1n << 95n

/** `validFrom` is the `asOf` of the action that set it. */
export interface FundingRate {
  readonly rate: HourlyFunding
  readonly validFrom: Millis
  /** Exclusive. */
  readonly validUntil: Millis
}

/** Before the first update. */
export const NO_RATE: FundingRate = {
  rate: 0n as HourlyFunding,
  validFrom: 0 as Millis,
  validUntil: 0 as Millis,
}

/**
 * The index after the time from `from` to `to` at `running`: rate x overlap with its validity / 1 h, towards zero. Accruing in n
 * steps instead of one loses at most n - 1 wei per quantity step, towards zero, and never gains any.
 */
export function accrue(index: FundingIndex, running: FundingRate, from: Millis, to: Millis): FundingIndex {
  const overlap = minOf(to, running.validUntil) - maxOf(from, running.validFrom)
  return overlap > 0 ? ((index + accrued(running.rate, overlap)) as FundingIndex) : index
}

/** bigint division goes towards zero. */
const accrued = (rate: HourlyFunding, millis: number): bigint => (rate * BigInt(millis)) / BigInt(HOUR)

/** What a market says about its funding. */
export type FundingTerms = Pick<MarketSpec, 'step' | 'fundingCap'>

/** The cap in wei per step and hour at the oracle price, down. */
export const fundingCapAt = ({ step, fundingCap }: FundingTerms, oracle: Price): HourlyFunding =>
  ((fundingCap * oracle * step) / (ONE * ONE)) as HourlyFunding

export interface FundingBounds {
  readonly lowest: HourlyFunding
  readonly highest: HourlyFunding
}

/**
 * The rates that may follow `running` as of `asOf`, both ends included; never empty. Within the cap; no further from the last
 * rate (from the cap, if the price has fallen so far) than 2 x cap x elapsed / 45 min; and where none is running, within cap / 3
 * of zero as far as that can be reached.
 */
export function fundingBounds(
  terms: FundingTerms,
  running: FundingRate,
  oracle: Price,
  asOf: Millis,
): FundingBounds {
  const cap: bigint = fundingCapAt(terms, oracle)
  const last = maxOf(-cap, minOf<bigint>(cap, running.rate))
  const elapsed = BigInt(asOf - running.validFrom)
  const swing = (2n * cap * elapsed) / BigInt(FULL_SWING)
  const isRunning = asOf < running.validUntil
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
  /** Accrued to the update's `asOf`. */
  readonly index: FundingIndex
  readonly oracle: Price
  /** End of the session that is running, 0 while it is closed; null where funding runs around the clock. */
  readonly sessionEnd: Millis | null
}

export type FundingRefusal =
  | { readonly code: 'NOT_PERPETUAL' }
  | ({ readonly code: 'RATE_OUT_OF_RANGE'; readonly received: HourlyFunding } & FundingBounds)
  /** Not after `asOf` and at most an hour later. */
  | {
      readonly code: 'VALIDITY'
      readonly after: Millis
      readonly latest: Millis
      readonly received: Millis
    }
  | { readonly code: 'SESSION_CLOSED' }
  | { readonly code: 'PAST_SESSION_END'; readonly sessionEnd: Millis; readonly received: Millis }
  /** The index could leave its 96 bits before the rate ends. */
  | { readonly code: 'INDEX_OUT_OF_RANGE'; readonly index: FundingIndex }

/** Whether the market takes the rate, and what is running then. */
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

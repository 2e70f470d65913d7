/**
 * Premium of a perpetual: how far its book is above or below the oracle price.
 * The premium is sampled about once a second and averaged over an hour; the average decides the funding rate.
 */
import { type LimitQuote, limitQuotes } from '../auction/quotes.ts'
import { type MarketSpec, notionalAt, tickStepValue } from '../market/market.ts'
import type { Side } from '../orders/order.ts'
import { divCeil, type Millis, maxOf, minOf, ONE, type Price, type Quote, type Rate } from '../units.ts'
import { type BookQuotes, quotesOf } from './mark.ts'

// ---------------------------------------------------------------------- one sample

/** Impact notional in USDM at an IMR of 1, as on dYdX. */
const IMPACT_MARGIN = (500n * ONE) as Quote

/**
 * Notional that a sample simulates, at least the smallest order.
 * Default: the notional that 500 USDM open at IMR, for example 10,000 USDM at 5 %. The operator may set another value.
 */
export function impactNotional(spec: MarketSpec, oracle: Price, set: Quote | null): Quote {
  const smallest = ((BigInt(spec.minQuantity) * spec.step * oracle) / ONE) as Quote
  return maxOf(set ?? impactRule(spec), smallest)
}

const impactRule = ({ imr }: Pick<MarketSpec, 'imr'>): Quote => ((IMPACT_MARGIN * ONE) / imr) as Quote

/**
 * Inclusive bounds for the operator's value.
 * A premium below a tenth of the default would be cheap to fake; far above the default, no book would be deep enough.
 */
export const impactNotionalBounds = (spec: Pick<MarketSpec, 'imr'>) => ({
  least: (impactRule(spec) / 10n) as Quote,
  most: (impactRule(spec) * 100n) as Quote,
})

/**
 * Average price of a market order of this notional against quotes of `side`, best first; null if they do not suffice.
 * Rounded so that the premium is rounded towards zero.
 */
export function impactPrice(
  spec: MarketSpec,
  side: Side,
  quotes: Iterable<Pick<LimitQuote, 'limit' | 'steps'>>,
  notional: Quote,
): Price | null {
  let paid = 0n
  let taken = 0n
  for (const { limit, steps } of quotes) {
    const worth = notionalAt(spec, limit, steps)
    if (paid + worth >= notional) {
      // The last quote fills partly: notional / (taken + (notional - paid) / perStep) wei per step.
      const perStep = BigInt(limit) * tickStepValue(spec)
      const numerator = notional * perStep * ONE
      const denominator = (taken * perStep + notional - paid) * spec.step
      return (side === 'LONG' ? numerator / denominator : divCeil(numerator, denominator)) as Price
    }
    paid += worth
    taken += BigInt(steps)
  }
  return null
}

export interface ImpactPrices {
  /** Null if the side is thinner than the impact notional. */
  readonly bid: Price | null
  readonly ask: Price | null
}

/**
 * `(max(0, bid - oracle) - max(0, oracle - ask)) / oracle`, rounded towards zero. A thin side counts as 0. Null if the
 * impact prices cross, because these orders match in the next auction.
 */
export function premiumOf(oracle: Price, { bid, ask }: ImpactPrices): Rate | null {
  if (bid !== null && ask !== null && bid > ask) return null
  const above = bid === null ? 0n : maxOf(0n, bid - oracle)
  const below = ask === null ? 0n : maxOf(0n, oracle - ask)
  return (((above - below) * ONE) / oracle) as Rate
}

/**
 * Premium of the book's steps that can execute in an auction at `now`; null if there is none.
 * `notional`: the operator's value.
 */
export function samplePremium(book: BookQuotes, notional: Quote | null): Rate | null {
  const { spec, oracle } = book
  const quotes = quotesOf(book)
  const size = impactNotional(spec, oracle, notional)
  const impact = (side: Side): Price | null => impactPrice(spec, side, limitQuotes(quotes, side), size)
  return premiumOf(oracle, { bid: impact('LONG'), ask: impact('SHORT') })
}

// ---------------------------------------------------------------------- the average

/**
 * Length of the average's intervals, aligned to UTC. The average covers the last twelve intervals: 55 to 60 minutes.
 */
export const PREMIUM_INTERVAL = 300_000
const INTERVALS = 12
/** A sample covers the time since the previous sample, up to this maximum. */
const LONGEST_GAP = 5_000
/**
 * Minimum sampled time. Missing time up to it counts with a premium of 0, so that few samples have little weight.
 */
export const LEAST_SAMPLED = 900_000
const SAMPLE_INTERVAL = 1_000

export interface PremiumInterval {
  readonly from: Millis
  /** Milliseconds covered by the samples. */
  readonly sampled: number
  /** Sum of premium × milliseconds. */
  readonly sum: bigint
}

export interface PremiumAverage {
  /** Time of the last sample, or of the last attempt. */
  readonly at: Millis
  /** Intervals, ascending. */
  readonly intervals: readonly PremiumInterval[]
}

export const NO_PREMIUM: PremiumAverage = { at: 0 as Millis, intervals: [] }

const intervalOf = (time: Millis): Millis => (time - (time % PREMIUM_INTERVAL)) as Millis

const windowAt = (
  { intervals }: Pick<PremiumAverage, 'intervals'>,
  now: Millis,
): readonly PremiumInterval[] => {
  const first = intervalOf(now) - (INTERVALS - 1) * PREMIUM_INTERVAL
  return intervals.filter(({ from }) => from >= first)
}

export const isSampleDue = ({ at }: PremiumAverage, now: Millis): boolean => now - at >= SAMPLE_INTERVAL

/**
 * The average after a sample. Null: no sample could be taken, and the time since the last sample does not count.
 */
export function addPremium(average: PremiumAverage, premium: Rate | null, now: Millis): PremiumAverage {
  const at = maxOf(average.at, now)
  const intervals = windowAt(average, at)
  if (premium === null) return { at, intervals }
  const millis = minOf(at - average.at, LONGEST_GAP)
  const from = intervalOf(at)
  const last = intervals.at(-1)
  const running = last?.from === from ? last : { from, sampled: 0, sum: 0n }
  const before = last?.from === from ? intervals.slice(0, -1) : intervals
  const sum = running.sum + premium * BigInt(millis)
  return { at, intervals: [...before, { from, sampled: running.sampled + millis, sum }] }
}

/** The time-weighted average of the last hour's samples, rounded towards zero. */
export function averagePremium(average: PremiumAverage, now: Millis): Rate {
  const window = windowAt(average, now)
  const sum = window.reduce((total, interval) => total + interval.sum, 0n)
  const sampled = window.reduce((total, interval) => total + interval.sampled, 0)
  return (sum / BigInt(maxOf(sampled, LEAST_SAMPLED))) as Rate
}

/** The feeds of a market: what its oracle reports on, and which values each may have. */
import { highestPrice, type MarketSpec, priceOf } from '../market/market.ts'
import { ONE } from '../units.ts'

/**
 * `index`: the price of the underlying. `session`: the end of the running trading session in milliseconds, 0
 * outside one. `final`: the price at which an expired market settles.
 */
export const FEEDS = ['index', 'session', 'final'] as const
export type Feed = (typeof FEEDS)[number]

type FeedTerms = Pick<MarketSpec, 'kind' | 'fundingSession'>

export const feedsOf = ({ kind, fundingSession }: FeedTerms): readonly Feed[] =>
  FEEDS.filter((feed) => {
    if (feed === 'session') return fundingSession
    return feed === 'index' || kind !== 'perpetual'
  })

/** The smallest and the largest value of a feed. */
export interface ValueRange {
  readonly low: bigint
  readonly high: bigint
}

/** Times on the chain have 48 bits. */
const LAST_TIME = 2n ** 48n - 1n

/** The values of a feed that the market's contract accepts. */
export function rangeOf(spec: MarketSpec, feed: Feed): ValueRange {
  if (feed === 'session') return { low: 0n, high: LAST_TIME }
  if (feed === 'final') return { low: spec.finalLow, high: spec.finalHigh }
  if (spec.kind === 'binary_future') return { low: spec.tick, high: ONE }
  return { low: 1n, high: priceOf(spec, highestPrice(spec)) }
}

/** Whether values below the lowest one count as it: a probability may be smaller than a tick, or 0. */
export const isFloored = ({ kind }: Pick<MarketSpec, 'kind'>, feed: Feed): boolean =>
  kind === 'binary_future' && feed === 'index'

/**
 * `live`: the latest report is the feed's value. `waiting`: no new report; the latest one serves until it is too
 * old. `halted`: what is known contradicts the latest report, which must not be used.
 */
export const FEED_STATUSES = ['live', 'waiting', 'halted'] as const
export type FeedStatus = (typeof FEED_STATUSES)[number]

/** Why a feed has no new report. Closed list. */
export const ABSENCE_REASONS = [
  /** Fewer usable readings than the feed's minimum. */
  'TOO_FEW_SOURCES',
  /** Fewer agreeing readings than the feed's minimum, no majority of the usable ones, or too wide a spread. */
  'SOURCES_DISAGREE',
  /** The move since the last signed report is larger than the signers sign. */
  'MOVE_TOO_LARGE',
  /** Fewer valid signatures than the threshold before the deadline. */
  'NO_QUORUM',
] as const
export type AbsenceReason = (typeof ABSENCE_REASONS)[number]

/** A contradiction halts the feed at once. What is only missing lets the latest report serve while it is fresh. */
export const statusOf = (reason: AbsenceReason | null): FeedStatus => {
  if (reason === null) return 'live'
  return reason === 'SOURCES_DISAGREE' || reason === 'MOVE_TOO_LARGE' ? 'halted' : 'waiting'
}

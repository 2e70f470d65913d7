/** Feeds of a market: the subjects of its oracle reports, and the valid values of each feed. */
import { highestPrice, type MarketSpec, priceOf } from '../market/market.ts'
import { ONE } from '../units.ts'

/**
 * `index`: price of the underlying.
 * `session`: end of the running trading session in milliseconds, 0 outside a session.
 * `final`: settlement price of an expired market.
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

/** On-chain times have 48 bits. */
const LAST_TIME = 2n ** 48n - 1n

/** Values of a feed that the market's contract accepts. */
export function rangeOf(spec: MarketSpec, feed: Feed): ValueRange {
  if (feed === 'session') return { low: 0n, high: LAST_TIME }
  if (feed === 'final') return { low: spec.finalLow, high: spec.finalHigh }
  if (spec.kind === 'binary_future') return { low: spec.tick, high: ONE }
  return { low: 1n, high: priceOf(spec, highestPrice(spec)) }
}

/**
 * Whether a value below the range counts as its lowest value. A probability may be smaller than one tick, or
 * 0.
 */
export const isFloored = ({ kind }: Pick<MarketSpec, 'kind'>, feed: Feed): boolean =>
  kind === 'binary_future' && feed === 'index'

/**
 * `live`: the latest report is the feed's value.
 * `waiting`: no new report; the latest report serves until it is too old.
 * `halted`: readings contradict the latest report, which must not be used.
 */
export const FEED_STATUSES = ['live', 'waiting', 'halted'] as const
export type FeedStatus = (typeof FEED_STATUSES)[number]

/** Reasons why a feed has no new report. The list is closed. */
export const ABSENCE_REASONS = [
  /** Usable readings below the feed's minimum. */
  'TOO_FEW_SOURCES',
  /** Agreeing readings below the feed's minimum, no majority of usable readings, or too wide a spread. */
  'SOURCES_DISAGREE',
  /** The move since the last signed report exceeds the signers' limit. */
  'MOVE_TOO_LARGE',
  /** Valid signatures below the threshold at the deadline. */
  'NO_QUORUM',
] as const
export type AbsenceReason = (typeof ABSENCE_REASONS)[number]

/**
 * A contradiction halts the feed at once. If data is only missing, the latest report serves while it is
 * fresh.
 */
export const statusOf = (reason: AbsenceReason | null): FeedStatus => {
  if (reason === null) return 'live'
  return reason === 'SOURCES_DISAGREE' || reason === 'MOVE_TOO_LARGE' ? 'halted' : 'waiting'
}

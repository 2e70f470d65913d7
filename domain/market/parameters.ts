/**
 * The parameters of a market that can change, apart from its grid. The chain announces each change, and applies it from the first action
 * at its time on.
 */
import type { ReportRules } from '../prices/report.ts'
import type { MarketMode, MarketSpec } from './market.ts'

/** Bounds of a market's reports, in the units of the contract. */
export type ReportLimits = Omit<ReportRules, 'kind' | 'tick'>

type ChangingTerm =
  | 'imr'
  | 'mmr'
  | 'mtbLong'
  | 'mtbShort'
  | 'makerFee'
  | 'takerFee'
  | 'fundingCap'
  | 'maxLeverage'

export interface MarketParameters extends Pick<MarketSpec, ChangingTerm> {
  /** Null for a market that was listed without them and has not changed its parameters since: its contract has them. */
  readonly reports: ReportLimits | null
}

/** The parameters with which a market is listed. */
export const listedParameters = (spec: MarketSpec, reports: ReportLimits | null): MarketParameters => ({
  imr: spec.imr,
  mmr: spec.mmr,
  mtbLong: spec.mtbLong,
  mtbShort: spec.mtbShort,
  makerFee: spec.makerFee,
  takerFee: spec.takerFee,
  fundingCap: spec.fundingCap,
  maxLeverage: spec.maxLeverage,
  reports,
})

/** The modes, each stricter than the one before it. */
export const MARKET_MODES: readonly MarketMode[] = ['open', 'cancel_only', 'halted', 'settling', 'settled']

export const isStricter = (mode: MarketMode, than: MarketMode): boolean =>
  MARKET_MODES.indexOf(mode) > MARKET_MODES.indexOf(than)

export const stricterOf = (a: MarketMode, b: MarketMode): MarketMode => (isStricter(b, a) ? b : a)

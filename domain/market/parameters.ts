/**
 * Changeable parameters of a market; its grid is fixed.
 * The chain announces each change, and applies it from the first action at or after its time.
 */
import type { ReportRules } from '../prices/report.ts'
import type { MarketMode, MarketSpec } from './market.ts'

/** Bounds of a market's reports, in contract units. */
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
  /**
   * Null if the market was listed without limits and its parameters never changed: only its contract stores
   * them.
   */
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

/** Market modes, from the laxest to the strictest. */
export const MARKET_MODES: readonly MarketMode[] = ['open', 'cancel_only', 'halted', 'settling', 'settled']

export const isStricter = (mode: MarketMode, than: MarketMode): boolean =>
  MARKET_MODES.indexOf(mode) > MARKET_MODES.indexOf(than)

export const stricterOf = (a: MarketMode, b: MarketMode): MarketMode => (isStricter(b, a) ? b : a)

/** What a market applies as of a time: its specification with the parameters, the mode and the fees in force. */
import type { ReportRules } from '../prices/report.ts'
import type { Millis, Rate } from '../units.ts'
import { applyDue, modeInForce, specAt, type TermsState } from './changes.ts'
import { chargingSpec, type FeeSchedule } from './fee-periods.ts'
import type { MarketMode, MarketSpec } from './market.ts'
import type { ReportLimits } from './parameters.ts'

/** A market's changing terms as they stand in the database. */
export interface MarketTerms extends TermsState {
  readonly fees: FeeSchedule
  /**
   * The taker rate at which the market's reservations are computed. All of them are computed again before a batch applies another highest
   * rate, so that a reservation is always a function of the order and of this rate.
   */
  readonly reservedFee: Rate
}

export interface TermsInForce {
  /** With the highest fee rates. */
  readonly spec: MarketSpec
  /** With the taker rate at which reservations are computed: for every rule that computes or compares one. */
  readonly reserving: MarketSpec
  /** With the rates that a batch charges. */
  readonly charging: MarketSpec
  readonly mode: MarketMode
  /** Null if only the contract has them. */
  readonly reports: ReportLimits | null
}

export function termsAt(listed: MarketSpec, terms: MarketTerms, asOf: Millis): TermsInForce {
  const spec = specAt(listed, terms.chain, asOf)
  return {
    spec,
    reserving: reservingSpec(spec, terms.reservedFee),
    charging: chargingSpec(spec, terms.fees, asOf),
    mode: modeInForce(terms, asOf),
    reports: applyDue(terms.chain, asOf).parameters.reports,
  }
}

export const reservingSpec = (spec: MarketSpec, reservedFee: Rate): MarketSpec =>
  spec.takerFee === reservedFee ? spec : { ...spec, takerFee: reservedFee }

/** The rules for reports with these limits. */
export const reportRulesFor = (
  { kind, tick }: Pick<MarketSpec, 'kind' | 'tick'>,
  limits: ReportLimits,
): ReportRules => ({ ...limits, kind, tick })

/** The rules for reports in force. `fetched`: of the contract, as long as the database does not have them. */
export const reportRulesOf = (
  { reports, spec }: TermsInForce,
  fetched: ReportRules | null,
): ReportRules | null => (reports === null ? fetched : reportRulesFor(spec, reports))

/** Equal for terms under which the same orders clear in the same way. */
export const keyOfTerms = ({ charging, mode, reports }: TermsInForce): string =>
  [mode, ...Object.values(charging), ...Object.values(reports ?? {})].join()

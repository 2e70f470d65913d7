/** Terms that a market applies at a given time: specification with parameters, mode and fees in force. */
import type { ReportRules } from '../prices/report.ts'
import type { Millis, Rate } from '../units.ts'
import { applyDue, modeInForce, specAt, type TermsState } from './changes.ts'
import { chargingSpec, type FeeSchedule } from './fee-periods.ts'
import type { MarketMode, MarketSpec } from './market.ts'
import type { ReportLimits } from './parameters.ts'

/** Changing terms of a market, as stored in the database. */
export interface MarketTerms extends TermsState {
  readonly fees: FeeSchedule
  /**
   * Taker rate of the market's reservations.
   * Before a batch applies another highest rate, all reservations are recomputed. A reservation therefore
   * depends only on the order and this rate.
   */
  readonly reservedFee: Rate
}

export interface TermsInForce {
  /** Specification with the highest fee rates. */
  readonly spec: MarketSpec
  /**
   * Specification with the taker rate of reservations, for every rule that computes or compares a
   * reservation.
   */
  readonly reserving: MarketSpec
  /** Specification with the rates that a batch charges. */
  readonly charging: MarketSpec
  readonly mode: MarketMode
  /** Report limits; null if only the contract stores them. */
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

/** Report rules with these limits. */
export const reportRulesFor = (
  { kind, tick }: Pick<MarketSpec, 'kind' | 'tick'>,
  limits: ReportLimits,
): ReportRules => ({ ...limits, kind, tick })

/** Report rules in force. `fetched`: rules read from the contract, used while the database has none. */
export const reportRulesOf = (
  { reports, spec }: TermsInForce,
  fetched: ReportRules | null,
): ReportRules | null => (reports === null ? fetched : reportRulesFor(spec, reports))

/** Key of terms. Terms with equal keys clear the same orders in the same way. */
export const keyOfTerms = ({ charging, mode, reports }: TermsInForce): string =>
  [mode, ...Object.values(charging), ...Object.values(reports ?? {})].join()

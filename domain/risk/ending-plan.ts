/** Decides the keeper's next step in a market that has closed and not ended yet. */
import type { MarketSpec } from '../market/market.ts'
import type { OracleReport } from '../settlement/settlement.ts'
import type { Millis } from '../units.ts'
import {
  type Ending,
  type FinalReport,
  isClosed,
  isFinalizable,
  isUnreported,
  reportableUntil,
  submitFinalReport,
} from './ending.ts'

export type EndingStep =
  /** The market is not closed. */
  | { readonly kind: 'none' }
  /** The final report is missing. */
  | { readonly kind: 'await_report' }
  | { readonly kind: 'submit_report'; readonly report: OracleReport }
  /** Another report can still replace the report in force. */
  | { readonly kind: 'await_dispute'; readonly until: Millis }
  | { readonly kind: 'finalize'; readonly report: FinalReport }
  /** No final report arrived in time: any account can freeze the market. */
  | { readonly kind: 'unreported' }

/**
 * The next step. `report`: current report of the feeds, or null.
 * A report with the price in force is not submitted again, although the contract accepts it.
 */
export function planEnding(
  spec: Pick<MarketSpec, 'kind'>,
  ending: Ending,
  report: OracleReport | null,
  blockTime: Millis,
): EndingStep {
  if (!isClosed(ending, blockTime)) return { kind: 'none' }
  const inForce = ending.report
  if (report !== null && report.price !== inForce?.price) {
    if (submitFinalReport(spec, ending, report, blockTime).ok) return { kind: 'submit_report', report }
  }
  if (inForce === null) return { kind: isUnreported(ending, blockTime) ? 'unreported' : 'await_report' }
  return isFinalizable(ending, blockTime)
    ? { kind: 'finalize', report: inForce }
    : { kind: 'await_dispute', until: reportableUntil(ending) as Millis }
}

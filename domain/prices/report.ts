/** Checks whether the market's contract will accept an oracle report. */
import type { MarketKind } from '../market/market.ts'
import { ACTION_AHEAD } from '../settlement/durations.ts'
import type { OracleReport } from '../settlement/settlement.ts'
import { abs, type Millis, ONE, type Price } from '../units.ts'

/**
 * The market's rules for reports, as its contract stores them: fractions in millionths, so that every
 * rounding is the same.
 */
export interface ReportRules {
  readonly kind: MarketKind
  readonly maxAge: Millis
  /**
   * A report may differ from the one before by at most `moveBase + moveSlope × seconds elapsed`, fractions of
   * the earlier price.
   */
  readonly moveBase: bigint
  readonly moveSlope: bigint
}

/** The report that the market used last. */
export interface UsedReport {
  readonly price: Price
  readonly observedAt: Millis
}

/**
 * True if the report is fresh at `asOf` and, compared with the last used report, neither older, nor of the
 * same time with another price, nor beyond the allowed move.
 */
export function isReportUsable(
  report: OracleReport,
  last: UsedReport | null,
  { kind, maxAge, moveBase, moveSlope }: ReportRules,
  asOf: Millis,
): boolean {
  if (report.price <= 0n || (kind === 'binary_future' && report.price > ONE)) return false
  if (asOf - report.observedAt > maxAge || report.observedAt - asOf > ACTION_AHEAD) return false
  if (last === null) return true
  const elapsed = report.observedAt - last.observedAt
  if (elapsed < 0 || (elapsed === 0 && report.price !== last.price)) return false
  const share = moveBase + (moveSlope * BigInt(elapsed)) / 1000n
  return abs(report.price - last.price) <= (last.price * share) / 1_000_000n
}

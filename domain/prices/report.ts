/** Checks whether the market's contract will accept an oracle report. */
import type { MarketKind } from '../market/market.ts'
import { ACTION_AHEAD } from '../settlement/durations.ts'
import type { OracleReport } from '../settlement/settlement.ts'
import { abs, type Millis, maxOf, ONE, type Price } from '../units.ts'

/**
 * Report rules of a market as its contract stores them. Fractions are in millionths, so that both sides round
 * equally.
 */
export interface ReportRules {
  readonly kind: MarketKind
  /** Tick of a binary market: its lowest price. */
  readonly tick: Price
  readonly maxAge: Millis
  /** Fractions of the last used price; see `allowedMove`. */
  readonly moveBase: bigint
  /** Allowed move per second. */
  readonly moveSlope: bigint
  /** Time after which the whole `moveBase` is available. */
  readonly moveWindow: Millis
}

/** Report that the market used last. */
export interface UsedReport {
  readonly price: Price
  readonly observedAt: Millis
}

/**
 * `BandLib.allowedMove` proves the reach of a series with S = (moveBase / moveWindow + moveSlope) × elapsed: `e^S` to
 * `1 - S` times the first price; in a binary market at most S away from it.
 */
export type MoveRules = Pick<ReportRules, 'kind' | 'moveBase' | 'moveSlope' | 'moveWindow'>

/**
 * Base of a move: the price; for a probability, the larger of the price and its complement, so that a price near 0 can
 * recover.
 */
const baseOf = (price: Price, kind: MarketKind): bigint =>
  kind === 'binary_future' ? maxOf(price, ONE - price) : price

/**
 * Largest difference to the last used report, observed `elapsed` earlier: base × (moveBase × min(elapsed, moveWindow) /
 * moveWindow + moveSlope × seconds elapsed), rounded down once to a wei.
 */
export function allowedMove(
  price: Price,
  elapsed: number,
  { kind, moveBase, moveSlope, moveWindow }: MoveRules,
): bigint {
  const based = BigInt(Math.min(elapsed, moveWindow))
  const window = BigInt(moveWindow)
  const share = moveBase * based * 1000n + moveSlope * BigInt(elapsed) * window
  return (baseOf(price, kind) * share) / (window * 1_000_000_000n)
}

/**
 * True if the report is fresh at `asOf` and acceptable after the last used report.
 * A report is not acceptable if it is older, has the same time with another price, or exceeds the allowed
 * move.
 */
export function isReportUsable(
  report: OracleReport,
  last: UsedReport | null,
  rules: ReportRules,
  asOf: Millis,
): boolean {
  const { kind, maxAge, tick } = rules
  if (report.price <= 0n) return false
  if (kind === 'binary_future' && (report.price < tick || report.price > ONE)) return false
  if (asOf - report.observedAt > maxAge || report.observedAt - asOf > ACTION_AHEAD) return false
  if (last === null) return true
  const elapsed = report.observedAt - last.observedAt
  return elapsed >= 0 && abs(report.price - last.price) <= allowedMove(last.price, elapsed, rules)
}

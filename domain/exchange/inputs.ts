/** Inputs of a decision besides the state. Each row stores the inputs that decided it. */
import type { SessionReport } from '../actions/action.ts'
import type { ReportRules } from '../prices/report.ts'
import type { OracleReport } from '../settlement/settlement.ts'
import type { MarketId, Millis } from '../units.ts'

export interface Inputs {
  /** Database clock, never earlier than a journal row. */
  readonly now: Millis
  /** Newest verified report of the market's oracle feed; null before the publisher's first report. */
  report(marketId: MarketId): OracleReport | null
  /** Newest verified report of the market's session feed; null if there is none. */
  session(marketId: MarketId): SessionReport | null
  /** The contract's report rules for the market; null until they are fetched. */
  reportRules(marketId: MarketId): ReportRules | null
  /** Block time of the chain head; null while no node responds. */
  readonly headTime: Millis | null
  /** Time at which the ingest last completed a pass over the chain head; null before the first pass. */
  readonly chainSeenAt: Millis | null
  readonly limits: FreshnessLimits
}

/** Maximum ages; a placement is refused if an input is older. */
export interface FreshnessLimits {
  readonly oracleMaxAgeMs: number
  readonly chainMaxAgeMs: number
}

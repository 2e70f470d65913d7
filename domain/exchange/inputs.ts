/** Inputs of a decision besides the state. A row contains the inputs that decided it. */
import type { SessionReport } from '../actions/action.ts'
import type { ReportRules } from '../prices/report.ts'
import type { OracleReport } from '../settlement/settlement.ts'
import type { MarketId, Millis } from '../units.ts'

export interface Inputs {
  /** The database's clock, never earlier than a row of the journal. */
  readonly now: Millis
  /** The newest verified report of the market's oracle feed; null before the publisher has spoken. */
  report(marketId: MarketId): OracleReport | null
  /** The newest verified report of the market's session feed; null if there is none. */
  session(marketId: MarketId): SessionReport | null
  /** The contract's rules for reports of the market; null until they are fetched. */
  reportRules(marketId: MarketId): ReportRules | null
  /** Block time of the chain's head; null while no node responds. */
  readonly headTime: Millis | null
  /** When the ingest last completed a pass over the chain's head; null before the first. */
  readonly chainSeenAt: Millis | null
  readonly limits: FreshnessLimits
}

/** Ages above which a placement is refused. */
export interface FreshnessLimits {
  readonly oracleMaxAgeMs: number
  readonly chainMaxAgeMs: number
}

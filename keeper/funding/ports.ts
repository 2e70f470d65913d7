/** What the funding job of a market reads. It writes through the queue of actions alone. */
import type { SessionReport } from '../../domain/actions/action.ts'
import type { MarketTerms } from '../../domain/market/in-force.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { LastUpdate } from '../../domain/prices/funding-plan.ts'
import type { FundingState } from '../../domain/prices/funding-state.ts'
import type { PremiumAverage } from '../../domain/prices/premium.ts'
import type { UsedReport } from '../../domain/prices/report.ts'
import type { OracleReport } from '../../domain/settlement/settlement.ts'
import type { Millis } from '../../domain/units.ts'

export interface FundingSnapshot {
  /** The database's clock when the snapshot was read. */
  readonly now: Millis
  readonly terms: MarketTerms
  readonly report: OracleReport | null
  readonly session: SessionReport | null
  /** The last report of the market's feed that an action uses, queued or mined. */
  readonly usedReport: UsedReport | null
  /** After the last queued action. */
  readonly funding: FundingState
  readonly premium: PremiumAverage
  readonly last: LastUpdate | null
}

export interface FundingStore {
  snapshot(spec: MarketSpec): Promise<FundingSnapshot>
}

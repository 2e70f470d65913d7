/** Inputs of a market's turn beside its orders and positions. */
import type { SessionReport } from '../actions/action.ts'
import type { MarketTerms } from '../market/in-force.ts'
import type { ProtectionSchedule } from '../market/price-protection.ts'
import type { FundingState } from '../prices/funding-state.ts'
import type { UsedReport } from '../prices/report.ts'
import type { OracleReport } from '../settlement/settlement.ts'
import type { Address, Millis, Price, Quote, Seconds, Seq, Ticks, UserId } from '../units.ts'
import type { SettlementBacklog } from './settlement-pace.ts'

/** Everything that can make a market's next auction differ from its last one. */
export interface MarketSnapshot {
  /** When the snapshot was read. */
  readonly now: Millis
  readonly head: Seq
  /** Parameters, mode, close and fees, with announced changes. */
  readonly terms: MarketTerms
  /** While reservations are computed again at another taker rate: the account up to which that is done. */
  readonly reservingAfter: UserId | null
  readonly lastBatchId: number
  /** The head of the journal in the auction of the last batch; 0 if there is none. */
  readonly lastBatchHead: Seq
  readonly lastAsOf: Millis
  readonly priceProtection: ProtectionSchedule
  /** At which the premium is measured, as the operator has set it; null: by the rule. */
  readonly impactNotional: Quote | null
  readonly lastPrice: { readonly price: Ticks; readonly at: Millis } | null
  /** The mark that is held until every order that it triggers has been triggered; null if the mark moves. */
  readonly heldMark: Price | null
  readonly report: OracleReport | null
  /** The last report of the market's feed that an action uses, queued or mined. */
  readonly usedReport: UsedReport | null
  /** After the last queued action. */
  readonly funding: FundingState
  /** The latest report of the market's session feed. */
  readonly session: SessionReport | null
  /** Accounts whose positions a queued inheritance or deleveraging, or an adjustment in flight, may change. */
  readonly touched: ReadonlySet<UserId>
  /** The most that adjustments in flight take out of the market's pool. */
  readonly removals: Quote
  /** The end of the bank's last pause; 0 if there was none. */
  readonly pauseEndsAt: Seconds
  /** The account that inherits positions, and the most notional that it may have; null if the market has none. */
  readonly backstop: { readonly address: Address; readonly cap: Quote } | null
  readonly backlog: SettlementBacklog
}

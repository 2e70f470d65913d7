/** Inputs of a market's turn besides its orders and positions. */
import type { SessionReport } from '../actions/action.ts'
import type { MarketTerms } from '../market/in-force.ts'
import type { ProtectionSchedule } from '../market/price-protection.ts'
import type { FundingState } from '../prices/funding-state.ts'
import type { UsedReport } from '../prices/report.ts'
import type { OracleReport } from '../settlement/settlement.ts'
import type { Address, Millis, Price, Quote, Seconds, Seq, Ticks, UserId } from '../units.ts'
import type { SettlementBacklog } from './settlement-pace.ts'

/** All values that can make a market's next auction differ from its last auction. */
export interface MarketSnapshot {
  /** Time at which the snapshot was read. */
  readonly now: Millis
  readonly head: Seq
  /** Parameters, mode, close and fees, with announced changes. */
  readonly terms: MarketTerms
  /** Progress of a recomputation of reservations: the last finished account; null if none runs. */
  readonly reservingAfter: UserId | null
  readonly lastBatchId: number
  /** Journal head in the auction of the last batch; 0 if there is none. */
  readonly lastBatchHead: Seq
  readonly lastAsOf: Millis
  readonly priceProtection: ProtectionSchedule
  /** Operator's impact notional of the premium; null: the default applies. */
  readonly impactNotional: Quote | null
  readonly lastPrice: { readonly price: Ticks; readonly at: Millis } | null
  /** Mark held until every order that it triggers has been triggered; null if the mark may move. */
  readonly heldMark: Price | null
  readonly report: OracleReport | null
  /** Last report of the market's feed that a queued or mined action uses. */
  readonly usedReport: UsedReport | null
  /** Funding after the last queued action. */
  readonly funding: FundingState
  /** The latest report of the market's session feed. */
  readonly session: SessionReport | null
  /**
   * Accounts with positions that a queued inheritance, a queued deleveraging or an adjustment in flight may change.
   */
  readonly touched: ReadonlySet<UserId>
  /** Largest amount that adjustments in flight take out of the market's pool. */
  readonly removals: Quote
  /** End of the bank's last pause; 0 if there was none. */
  readonly pauseEndsAt: Seconds
  /** Account that inherits positions, with its highest notional; null if the market has none. */
  readonly backstop: { readonly address: Address; readonly cap: Quote } | null
  readonly backlog: SettlementBacklog
}

/** Facts: the meaning of each event of the followed contracts. The indexer decodes them; the exchange follows them. */

import type { SessionKeyState } from '../journal/accounts-row.ts'
import type { EndingTimes } from '../journal/action-rows.ts'
import type { TermsEvent } from '../market/changes.ts'
import type { MarketMode, MarketSpec } from '../market/market.ts'
import type { MarketParameters } from '../market/parameters.ts'
import type { PositionAdjusted } from '../positions/adjustment-replay.ts'
import type { FundingUpdated } from '../prices/funding.ts'
import type { FinalReport } from '../risk/ending.ts'
import type {
  BackstopInheritanceFailed,
  Claimed,
  InsolvencyReported,
  MarketEnded,
  PositionInherited,
  PositionsDeleveraged,
} from '../risk/risk-replay.ts'
import type { Haircut } from '../risk/wind-down.ts'
import type { BatchSettled } from '../settlement/settlement.ts'
import type { Address, Quote } from '../units.ts'

export interface LedgerMoved {
  readonly kind: 'ledger_moved'
  readonly cause: 'deposit' | 'withdrawal_request' | 'withdrawal' | 'fees_collected'
  readonly account: Address
  readonly freeDelta: bigint
  readonly pendingDelta: bigint
}

/** The bank was paused until `endsAt` in Unix seconds; null: its pause ended with the block. */
export interface BankPauseFact {
  readonly kind: 'bank_pause_changed'
  readonly endsAt: number | null
}

export interface PartMined {
  readonly kind: 'part_mined'
  readonly spec: MarketSpec
  readonly settled: BatchSettled
}

/** The maker cancelled orders on the chain: those with these salts, or all with a salt below one. */
export interface SaltsCancelled {
  readonly kind: 'salts_cancelled'
  readonly spec: MarketSpec
  readonly maker: Address
  readonly salts: readonly bigint[] | { readonly below: bigint }
}

/** An owner has registered or revoked a session key. Times in Unix seconds. */
export interface SessionKeyUpdated {
  readonly kind: 'session_key_updated'
  readonly owner: Address
  readonly key: Address
  readonly change:
    | Pick<SessionKeyState, 'permissions' | 'registered_at' | 'expires_at'>
    | { readonly revoked_at: number }
}

/** The forwarder has executed the signer's request with this nonce. `success` is false if the call failed. */
export interface ForwardRequestExecutedFact {
  readonly kind: 'forward_request_executed'
  readonly signer: Address
  readonly nonce: number
  readonly success: boolean
}

export interface MarketFact {
  readonly spec: MarketSpec
}

export interface PositionInheritedFact extends MarketFact {
  readonly kind: 'position_inherited'
  readonly event: PositionInherited
}

/** The backstop could not take the position over: no position and no balance changed. */
export interface InheritanceFailedFact extends MarketFact {
  readonly kind: 'inheritance_failed'
  readonly event: BackstopInheritanceFailed
}

export interface PositionsDeleveragedFact extends MarketFact {
  readonly kind: 'positions_deleveraged'
  readonly event: PositionsDeleveraged
}

export interface MarketEndedFact extends MarketFact {
  readonly kind: 'market_ended'
  readonly event: MarketEnded
}

/** Expiry or dispute window were extended, a close was scheduled or replaced, or a final price was reported. */
export interface EndingChangedFact extends MarketFact {
  readonly kind: 'ending_changed'
  readonly times: Partial<EndingTimes>
  /** The report of the final price in force from now on. */
  readonly report?: Pick<FinalReport, 'price' | 'observedAt'>
}

/** `ParametersChanged`: the changes that were due are stored. Its time is that of the action with this id. */
interface ChangesApplied {
  readonly kind: 'changes_applied'
  readonly actionId: number
  readonly parameters: MarketParameters
  readonly mode: MarketMode
}

/** A change of parameters or mode was announced, applied or dropped. */
export interface TermsChangedFact extends MarketFact {
  readonly kind: 'terms_changed'
  readonly event: Exclude<TermsEvent, { kind: 'changes_applied' }> | ChangesApplied
  /** Times of the close, if the event changes it; else null. */
  readonly times: Partial<EndingTimes> | null
}

/** The market has another backstop or another cap. It is a term that has no effect on orders. */
export interface BackstopChangedFact extends MarketFact {
  readonly kind: 'terms_changed'
  /** Null: the market has no backstop. */
  readonly event: {
    readonly kind: 'backstop_changed'
    readonly backstop: Address | null
    readonly cap: Quote
  }
  readonly times: null
}

export interface InsolvencyReportedFact extends MarketFact {
  readonly kind: 'insolvency_reported'
  readonly event: InsolvencyReported
}

export interface HaircutFixedFact extends MarketFact {
  readonly kind: 'haircut_fixed'
  readonly haircut: Haircut
}

export interface DeficitCoveredFact extends MarketFact {
  readonly kind: 'deficit_covered'
  readonly payer: Address
  readonly amount: Quote
}

export interface ClaimedFact extends MarketFact {
  readonly kind: 'claimed'
  readonly event: Claimed
}

/** Backstop, deleveraging and wind-down: what changes positions outside batches and adjustments. */
export type RiskFact =
  | PositionInheritedFact
  | InheritanceFailedFact
  | PositionsDeleveragedFact
  | MarketEndedFact
  | InsolvencyReportedFact
  | HaircutFixedFact
  | DeficitCoveredFact
  | ClaimedFact

/** The position's owner changed its margin or leverage. */
export interface PositionAdjustedFact extends MarketFact {
  readonly kind: 'position_adjusted'
  readonly event: PositionAdjusted
}

export interface FundingFact extends MarketFact {
  readonly kind: 'funding_updated'
  readonly event: FundingUpdated
}

/** The account's adjustments with a nonce below `minimum` are invalid. */
export interface MarginNoncesInvalidatedFact extends MarketFact {
  readonly kind: 'margin_nonces_invalidated'
  readonly account: Address
  readonly minimum: bigint
}

/** A declared event that changes nothing in this database. */
export interface IgnoredEvent {
  readonly kind: 'ignored'
  readonly event: string
}

/** A log of a followed contract that does not match its ABI. `spec` is null where the contract is no market. */
export interface UndecodableLog {
  readonly kind: 'undecodable'
  readonly spec: MarketSpec | null
  readonly problem: string
}

/** Facts that a market's contract emits. */
export type TraderFact =
  | PartMined
  | SaltsCancelled
  | RiskFact
  | PositionAdjustedFact
  | FundingFact
  | EndingChangedFact
  | TermsChangedFact
  | BackstopChangedFact
  | MarginNoncesInvalidatedFact

export type ChainFact =
  | LedgerMoved
  | BankPauseFact
  | SessionKeyUpdated
  | ForwardRequestExecutedFact
  | TraderFact
  | IgnoredEvent
  | UndecodableLog

/** A fact with the log that states it. */
export interface LoggedFact {
  readonly log: { readonly logIndex: number; readonly txHash: string; readonly address: Address }
  readonly fact: ChainFact
}

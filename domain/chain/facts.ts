/**
 * Facts: typed meanings of the followed contracts' events. The indexer decodes events to facts; the exchange
 * applies them.
 */

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

/** The bank was paused until `endsAt` in Unix seconds; null: the pause ended with this block. */
export interface BankPauseFact {
  readonly kind: 'bank_pause_changed'
  readonly endsAt: number | null
}

export interface PartMined {
  readonly kind: 'part_mined'
  readonly spec: MarketSpec
  readonly settled: BatchSettled
}

/**
 * The maker cancelled orders on chain: the orders with the listed salts, or all orders below a minimum salt.
 */
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

/**
 * The forwarder executed the signer's request with this nonce. `success` is false if the inner call failed.
 */
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

/**
 * Expiry or dispute window was extended, a close was scheduled or replaced, or a final price was reported.
 */
export interface EndingChangedFact extends MarketFact {
  readonly kind: 'ending_changed'
  readonly times: Partial<EndingTimes>
  /** Final report in force from now on. */
  readonly report?: Pick<FinalReport, 'price' | 'observedAt'>
}

/** `ParametersChanged`: due changes are stored. The event's time is the time of the action with this id. */
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
  /** Close times, if the event changes them; otherwise null. */
  readonly times: Partial<EndingTimes> | null
}

/** The market has a new backstop or a new cap. Orders do not depend on either. */
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

/** Backstop, deleveraging and wind-down events: they change positions outside batches and adjustments. */
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

/** A declared event without an effect on this database. */
export interface IgnoredEvent {
  readonly kind: 'ignored'
  readonly event: string
}

/**
 * A log of a followed contract that does not match its ABI. `spec` is null if the contract is not a market.
 */
export interface UndecodableLog {
  readonly kind: 'undecodable'
  readonly spec: MarketSpec | null
  readonly problem: string
}

/** Facts from a market contract. */
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

/** A fact with its log. */
export interface LoggedFact {
  readonly log: { readonly logIndex: number; readonly txHash: string; readonly address: Address }
  readonly fact: ChainFact
}

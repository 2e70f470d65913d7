/** What the contracts say, in the words of the exchange. */

import type { SessionKeyState } from '../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { FundingUpdated, PositionAdjusted } from '../../domain/positions/adjust-replay.ts'
import type {
  BackstopInheritanceFailed,
  Claimed,
  InsolvencyReported,
  MarketEnded,
  PositionInherited,
  PositionsDeleveraged,
} from '../../domain/risk/risk-replay.ts'
import type { Haircut } from '../../domain/risk/wind-down.ts'
import type { BatchSettled } from '../../domain/settlement/settlement.ts'
import type { Address, Quote } from '../../domain/units.ts'

export interface LedgerMoved {
  readonly kind: 'ledger_moved'
  readonly cause: 'deposit' | 'withdrawal_request' | 'withdrawal' | 'fees_collected'
  readonly account: Address
  readonly freeDelta: bigint
  readonly pendingDelta: bigint
}

export interface PartMined {
  readonly kind: 'part_mined'
  readonly spec: MarketSpec
  readonly settled: BatchSettled
}

/** The maker killed orders of his on the chain: of these salts, or all below one. */
export interface SaltsCancelled {
  readonly kind: 'salts_cancelled'
  readonly spec: MarketSpec
  readonly maker: Address
  readonly salts: readonly bigint[] | { readonly below: bigint }
}

/** An owner has approved a key, or ended its approval. Times in Unix seconds. */
export interface SessionKeyUpdated {
  readonly kind: 'session_key_updated'
  readonly owner: Address
  readonly key: Address
  readonly change:
    | Pick<SessionKeyState, 'permissions' | 'registered_at' | 'expires_at'>
    | { readonly revoked_at: number }
}

interface MarketFact {
  readonly spec: MarketSpec
}

export interface PositionInheritedFact extends MarketFact {
  readonly kind: 'position_inherited'
  readonly event: PositionInherited
}

/** Nothing moved. */
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

/** What happened to positions outside batches and adjustments. */
export type RiskFact =
  | PositionInheritedFact
  | InheritanceFailedFact
  | PositionsDeleveragedFact
  | MarketEndedFact
  | InsolvencyReportedFact
  | HaircutFixedFact
  | DeficitCoveredFact
  | ClaimedFact

/** Margin or leverage, changed by the position's owner. */
export interface PositionAdjustedFact extends MarketFact {
  readonly kind: 'position_adjusted'
  readonly event: PositionAdjusted
}

export interface FundingFact extends MarketFact {
  readonly kind: 'funding_updated'
  readonly event: FundingUpdated
}

/** Known, and nothing to us. */
export interface IgnoredEvent {
  readonly kind: 'ignored'
  readonly event: string
}

/** One of our contracts said what we do not understand. */
export interface UndecodableLog {
  readonly kind: 'undecodable'
  readonly spec: MarketSpec | null
  readonly problem: string
}

export type ChainFact =
  | LedgerMoved
  | PartMined
  | SaltsCancelled
  | SessionKeyUpdated
  | RiskFact
  | PositionAdjustedFact
  | FundingFact
  | IgnoredEvent
  | UndecodableLog

/** The contracts that are followed. */
export interface Contracts {
  readonly bank: Address
  readonly accountManager: Address
  /** By trader. */
  readonly markets: ReadonlyMap<Address, MarketSpec>
}

export const addressesOf = ({ bank, accountManager, markets }: Contracts): Address[] => [
  bank,
  accountManager,
  ...markets.keys(),
]

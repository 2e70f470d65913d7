/** What the contracts say, in the words of the exchange. */

import type { SessionKeyState } from '../domain/log.ts'
import type { MarketSpec } from '../domain/market.ts'
import type { BatchSettled } from '../domain/settlement.ts'
import type { Address } from '../domain/units.ts'

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
export interface SessionKeyMoved {
  readonly kind: 'session_key_moved'
  readonly owner: Address
  readonly key: Address
  readonly change:
    | Pick<SessionKeyState, 'permissions' | 'registered_at' | 'expires_at'>
    | { readonly revoked_at: number }
}

/** Known, and nothing to us. */
export interface Unconcerning {
  readonly kind: 'unconcerning'
  readonly event: string
}

/** One of our contracts said what we do not understand. */
export interface Undecodable {
  readonly kind: 'undecodable'
  readonly spec: MarketSpec | null
  readonly problem: string
}

export type ChainFact =
  | LedgerMoved
  | PartMined
  | SaltsCancelled
  | SessionKeyMoved
  | Unconcerning
  | Undecodable

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

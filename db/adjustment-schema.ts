/** The tables of adjustment attempts. */
import type { ColumnType, JSONColumnType } from 'kysely'
import type { StoredAdjustment } from '../domain/journal/adjustment-row.ts'
import type { AdjustmentKind, AttemptStatus } from '../domain/positions/adjustment-attempt.ts'
import type { FailureKind } from '../domain/settlement/receipt.ts'

type Fixed<Value> = ColumnType<Value, Value, never>

/** One row per signed adjustment that was accepted: the api prepares it, the keeper executes it, its block commits it. Written by: engine. */
export interface AdjustmentAttemptsTable {
  adjustment_id: Fixed<string>
  market_id: Fixed<number>
  user_id: Fixed<number>
  /** The EIP-712 digest: the same adjustment is accepted once. */
  digest: Fixed<string>
  kind: Fixed<AdjustmentKind>
  /** Nonce of the adjustment among those of its account and market. */
  nonce: Fixed<number>
  request: JSONColumnType<StoredAdjustment>
  status: AttemptStatus
  /** Wei reserved of the free balance while the attempt is in flight, and now. */
  hold: Fixed<bigint>
  held: bigint
  /** The most wei that it takes out of the market's pool. */
  pays: Fixed<bigint>
  /** Orders that it has cancelled. */
  cancelled_orders: Fixed<number>
  /** As-of time of the signed transaction. */
  as_of: number | null
  relayer: string | null
  relayer_nonce: number | null
  tx_hash: string | null
  /** Wei into the position, negative out of it; null until committed. */
  moved: bigint | null
  /** For a removal: the maximum removable amount when it was signed. */
  max_removable: bigint | null
  gas_used: number | null
  failure_kind: FailureKind | null
  failure_reason: string | null
  /** The place of its last row in the market's journal. */
  seq: number
  created_at: Fixed<number>
  updated_at: number
}

/** The nonces of executed adjustments, whichever operator has executed them. Written by: engine. */
export interface UsedMarginNoncesTable {
  market_id: number
  user_id: number
  nonce: bigint
}

/** The attempts in their present state. Only the projector writes it. */
export interface ReadAdjustmentAttemptsTable {
  adjustment_id: string
  market_id: number
  user_id: number
  kind: AdjustmentKind
  status: AttemptStatus
  amount: bigint
  new_leverage: number | null
  tx_hash: string | null
  failure_kind: FailureKind | null
  failure_reason: string | null
  created_at: number
  updated_at: number
}

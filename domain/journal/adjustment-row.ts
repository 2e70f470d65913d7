/** Market journal row of an adjustment attempt. */
import type { AdjustmentKind, AttemptStatus } from '../positions/adjustment-attempt.ts'
import type { FailureKind } from '../settlement/receipt.ts'
import type { Wei } from './wei.ts'

/** The adjustment that a trader signed, with amounts in wei as decimal strings. */
export interface StoredAdjustment {
  readonly signer: string
  readonly signature: string
  readonly deadline: number
  /** Set for a change of margin. */
  readonly amount?: string
  readonly remove_mode?: 'exact' | 'up_to'
  readonly min_amount?: string
  /** Set for a change of leverage. */
  readonly leverage?: number
  readonly max_margin_in?: string
  readonly min_margin_out?: string
}

/** Fields of an attempt that are fixed at acceptance. */
export interface AdjustmentRequest {
  readonly digest: string
  /** Unique among the adjustments of the account in the market. */
  readonly nonce: number
  readonly request: StoredAdjustment
  /** Reserved while the attempt is in flight. */
  readonly hold: Wei
  /** Maximum amount that it takes out of the market's pool. */
  readonly pays: Wei
  /** Number of orders that it cancelled. */
  readonly cancelled_orders: number
}

/** The attempt has a new status. The row states every field, so the last row is its present state. */
export interface AdjustmentChanged {
  readonly kind: 'adjustment_changed'
  readonly adjustment_id: string
  readonly user_id: number
  readonly adjustment: AdjustmentKind
  readonly status: AttemptStatus
  /** Requested amount; once committed, the moved amount. Positive into the position, negative out of it. */
  readonly amount: Wei
  readonly new_leverage: number | null
  readonly tx_hash: string | null
  readonly failure_kind: FailureKind | null
  readonly failure_reason: string | null
  /** Change of the account's reservation. */
  readonly reserved_delta: Wei
  readonly created_at: number
  readonly at: number
  /** Set only in the attempt's first row. */
  readonly request?: AdjustmentRequest
  /** State of the attempt after this row; an absent field is null. */
  readonly as_of?: number
  readonly relayer?: string
  readonly relayer_nonce?: number
  readonly max_removable?: Wei
  readonly moved?: Wei
  readonly gas_used?: number
}

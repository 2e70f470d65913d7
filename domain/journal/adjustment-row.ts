/** The row of a market's journal about an adjustment attempt. */
import type { AdjustmentKind, AttemptStatus } from '../positions/adjustment-attempt.ts'
import type { FailureKind } from '../settlement/receipt.ts'
import type { Wei } from './wei.ts'

/** What a trader has signed, with amounts in wei as decimal strings. */
export interface StoredAdjustment {
  readonly signer: string
  readonly signature: string
  readonly deadline: number
  /** Of a change of margin. */
  readonly amount?: string
  readonly remove_mode?: 'exact' | 'up_to'
  readonly min_amount?: string
  /** Of a change of leverage. */
  readonly leverage?: number
  readonly max_margin_in?: string
  readonly min_margin_out?: string
}

/** What is fixed when an attempt is accepted. */
export interface AdjustmentRequest {
  readonly digest: string
  /** Among the adjustments of the account and the market. */
  readonly nonce: number
  readonly request: StoredAdjustment
  /** Reserved while the attempt is in flight. */
  readonly hold: Wei
  /** The most that it takes out of the market's pool. */
  readonly pays: Wei
  /** Orders that it has cancelled. */
  readonly cancelled_orders: number
}

/** The attempt has the status. The row states all of it, so that the last one is its present state. */
export interface AdjustmentChanged {
  readonly kind: 'adjustment_changed'
  readonly adjustment_id: string
  readonly user_id: number
  readonly adjustment: AdjustmentKind
  readonly status: AttemptStatus
  /** As requested; what has moved once it is committed. Positive into the position, negative out of it. */
  readonly amount: Wei
  readonly new_leverage: number | null
  readonly tx_hash: string | null
  readonly failure_kind: FailureKind | null
  readonly failure_reason: string | null
  /** Change of the account's reservation. */
  readonly reserved_delta: Wei
  readonly created_at: number
  readonly at: number
  /** Only in the attempt's first row. */
  readonly request?: AdjustmentRequest
  /** Of the attempt after the row; absent: null. */
  readonly as_of?: number
  readonly relayer?: string
  readonly relayer_nonce?: number
  readonly max_removable?: Wei
  readonly moved?: Wei
  readonly gas_used?: number
}

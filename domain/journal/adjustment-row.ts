/** The row of a market's journal about an adjustment attempt. */
import type { AdjustmentKind, AttemptStatus } from '../positions/adjustment-attempt.ts'
import type { FailureKind } from '../settlement/receipt.ts'
import type { Wei } from './wei.ts'

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
}

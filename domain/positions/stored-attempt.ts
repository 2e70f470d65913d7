/** A stored adjustment attempt, its changes, and the journal rows that state them. */
import type { AdjustmentChanged, AdjustmentRequest, StoredAdjustment } from '../journal/adjustment-row.ts'
import type { FailureKind, Mismatch } from '../settlement/receipt.ts'
import { type AdjustmentKind, type AttemptStatus, isInFlight } from './adjustment-attempt.ts'

export interface StoredAttempt {
  readonly adjustment_id: string
  readonly market_id: number
  readonly user_id: number
  readonly digest: string
  readonly kind: AdjustmentKind
  readonly nonce: number
  readonly request: StoredAdjustment
  readonly status: AttemptStatus
  readonly hold: bigint
  readonly held: bigint
  readonly pays: bigint
  readonly cancelled_orders: number
  readonly as_of: number | null
  readonly relayer: string | null
  readonly relayer_nonce: number | null
  readonly tx_hash: string | null
  readonly moved: bigint | null
  readonly max_removable: bigint | null
  readonly gas_used: number | null
  readonly failure_kind: FailureKind | null
  readonly failure_reason: string | null
  readonly created_at: number
  readonly updated_at: number
}

/** Fields that change with a status. */
export interface AttemptChange {
  readonly status: AttemptStatus
  readonly as_of?: number
  readonly relayer?: string
  readonly relayer_nonce?: number
  readonly tx_hash?: string | null
  readonly max_removable?: bigint | null
  readonly moved?: bigint | null
  readonly gas_used?: number | null
  readonly failure_kind?: FailureKind | null
  readonly failure_reason?: string | null
}

/** The attempt after the change, with the row that states it. The reservation follows from the status. */
export function changedAttempt<Attempt extends StoredAttempt>(
  attempt: Attempt,
  change: AttemptChange,
  at: number,
): { readonly attempt: Attempt; readonly row: AdjustmentChanged } {
  const held = isInFlight(change.status) ? attempt.hold : 0n
  const after: Attempt = { ...attempt, ...change, held, updated_at: at }
  return { attempt: after, row: attemptRow(after, held - attempt.held) }
}

export function attemptRow(attempt: StoredAttempt, reservedDelta: bigint): AdjustmentChanged {
  const { adjustment_id, user_id, kind, status, tx_hash, failure_kind, failure_reason } = attempt
  const { amount = '0', leverage = null } = attempt.request
  return {
    kind: 'adjustment_changed',
    adjustment_id,
    user_id,
    adjustment: kind,
    status,
    amount: attempt.moved === null ? amount : attempt.moved.toString(),
    new_leverage: leverage,
    tx_hash,
    failure_kind,
    failure_reason,
    reserved_delta: reservedDelta.toString(),
    created_at: attempt.created_at,
    at: attempt.updated_at,
    ...(attempt.as_of !== null && { as_of: attempt.as_of }),
    ...(attempt.relayer !== null && { relayer: attempt.relayer }),
    ...(attempt.relayer_nonce !== null && { relayer_nonce: attempt.relayer_nonce }),
    ...(attempt.max_removable !== null && { max_removable: attempt.max_removable.toString() }),
    ...(attempt.moved !== null && { moved: attempt.moved.toString() }),
    ...(attempt.gas_used !== null && { gas_used: attempt.gas_used }),
  }
}

/** Fields in the attempt's first row besides its status. */
export const attemptRequest = (attempt: StoredAttempt): AdjustmentRequest => ({
  digest: attempt.digest,
  nonce: attempt.nonce,
  request: attempt.request,
  hold: attempt.hold.toString(),
  pays: attempt.pays.toString(),
  cancelled_orders: attempt.cancelled_orders,
})

/** The chain executed the adjustment, and its events match the expectation. */
export const committedAttempt = (
  amount: bigint,
  { txHash, gasUsed }: { readonly txHash: string; readonly gasUsed: number | null },
): AttemptChange => ({
  status: 'COMMITTED',
  tx_hash: txHash,
  moved: amount,
  gas_used: gasUsed,
  failure_kind: null,
  failure_reason: null,
})

export const mismatchedAttempt = ({ kind, reason }: Mismatch, txHash: string): AttemptChange => ({
  status: 'RECEIPT_RECONCILIATION_FAILED',
  tx_hash: txHash,
  failure_kind: kind as FailureKind,
  failure_reason: reason,
})

/** The block that ended the attempt left the chain. Null if the attempt did not end with a block. */
export function reopenedAttempt({ status, relayer }: StoredAttempt): AttemptChange | null {
  if (status !== 'COMMITTED' && status !== 'RECEIPT_RECONCILIATION_FAILED') return null
  const open = { moved: null, gas_used: null, failure_kind: null, failure_reason: null }
  // An attempt executed by another operator was not sent from here; it is signed like a new attempt.
  return relayer === null ? { status: 'PREPARED', ...open, tx_hash: null } : { status: 'SUBMITTED', ...open }
}

/** Ports of the adjustment job. */

import type { Fence } from '../../db/fence.ts'
import type { SigningInput } from '../../domain/positions/adjustment-signing.ts'
import type { SignedAdjustment } from '../../domain/positions/stored-adjustment.ts'
import type { FailureKind } from '../../domain/settlement/receipt.ts'
import type { Address, MarketId, Millis, Quote, UserId } from '../../domain/units.ts'
import type { SignedTransaction } from '../ports.ts'
import type { RelayerLane, StoredTransaction } from '../relayer/ports.ts'

/** An attempt that has not ended. */
export interface OpenAttempt {
  readonly adjustmentId: string
  readonly marketId: MarketId
  readonly userId: UserId
  readonly account: Address
  readonly status: 'PREPARED' | 'SIGNED' | 'SUBMITTED'
  readonly createdAt: Millis
  readonly nonce: number
  readonly signed: SignedAdjustment
  /** As-of time of the signed transaction; null before it exists. */
  readonly asOf: Millis | null
  readonly relayer: string | null
  readonly relayerNonce: number | null
}

/** A transaction of an attempt, and whether the indexer has recorded its block. */
export interface AttemptTransaction extends StoredTransaction {
  readonly isIngested: boolean
}

/** State of market and account, read from the database at one moment. */
export type SigningState = Pick<
  SigningInput,
  | 'now'
  | 'sessionKey'
  | 'minimumNonce'
  | 'funds'
  | 'isMoving'
  | 'position'
  | 'terms'
  | 'funding'
  | 'report'
  | 'usedReport'
>

export interface NewSignature extends SignedTransaction {
  readonly attempt: OpenAttempt
  readonly nonce: number
  readonly signedAt: Millis
  readonly asOf: Millis
  readonly maxRemovable: Quote | null
}

export interface AttemptFailure {
  readonly status: 'ABORTED' | 'RECEIPT_RECONCILIATION_FAILED'
  readonly kind: FailureKind | null
  readonly reason: string
}

export const UNMINED: AttemptFailure = { status: 'ABORTED', kind: null, reason: 'not mined in time' }

export interface AdjustmentStore {
  /** Attempts that have not ended, oldest first. */
  open(limit: number): Promise<readonly OpenAttempt[]>
  /** Attempts in flight created before `before`, oldest first. */
  overdue(before: Millis, limit: number): Promise<readonly OpenAttempt[]>
  state(attempt: OpenAttempt): Promise<SigningState>
  /** Stores signed bytes of one market's attempts. Returns the attempts that were still unsigned. */
  storeSigned(
    lane: RelayerLane,
    fence: Fence,
    signatures: readonly NewSignature[],
  ): Promise<readonly StoredTransaction[]>
  /**
   * Records that signed attempts of one market were broadcast, except attempts that are already recorded or have ended.
   */
  noteSubmitted(attempts: readonly OpenAttempt[], fence: Fence, at: Millis): Promise<void>
  /**
   * Ends the attempt without a ledger change and releases its reservation. Does nothing if the attempt has ended or was
   * signed meanwhile.
   */
  fail(attempt: OpenAttempt, fence: Fence, failure: AttemptFailure, at: Millis): Promise<void>
  /** The lane's transactions with these nonces, oldest first. */
  transactions(lane: RelayerLane, nonces: readonly number[]): Promise<readonly AttemptTransaction[]>
}

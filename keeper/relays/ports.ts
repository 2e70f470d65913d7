/** Ports of the relay, which sends owners' signed requests. */
import type { Fence } from '../../db/fence.ts'
import type { RelayOperation } from '../../db/relay-operations.ts'
import type { RelayEnd } from '../../domain/relays/stored-relay.ts'
import type { Millis } from '../../domain/units.ts'
import type { SignedTransaction } from '../ports.ts'
import type { RelayerLane, StoredTransaction } from '../relayer/ports.ts'

export type { RelayEnd, RelayOperation }

export interface SignedRelay extends SignedTransaction {
  readonly nonce: number
  readonly signedAt: Millis
}

/** An operation whose relayer nonce was used without executing it. */
export interface UnexecutedRelay {
  readonly operation: RelayOperation
  /** Its reverted transaction, in a block that the indexer has recorded; null: another transaction has used the nonce. */
  readonly reverted: { readonly raw: `0x${string}`; readonly block: number } | null
}

export interface RelayStore {
  /** QUEUED operations whose nonce is their owner's next, the oldest first. */
  ready(limit: number): Promise<readonly RelayOperation[]>
  /** Stores the transaction and marks the operation as RELAYING. Null if the operation is not QUEUED any more. */
  storeSigned(
    operation: RelayOperation,
    lane: RelayerLane,
    fence: Fence,
    signed: SignedRelay,
  ): Promise<StoredTransaction | null>
  unexecuted(lane: RelayerLane, limit: number): Promise<readonly UnexecutedRelay[]>
  /** Ends the operation unless its state has changed. */
  fail(operation: RelayOperation, fence: Fence, end: RelayEnd): Promise<void>
  /** Returns the operation to QUEUED unless its state has changed. */
  requeue(operation: RelayOperation, fence: Fence): Promise<void>
  /** Open operations whose deadline is before the time of the newest recorded block with `confirmations` blocks on top. */
  expired(confirmations: number, limit: number): Promise<readonly RelayOperation[]>
}

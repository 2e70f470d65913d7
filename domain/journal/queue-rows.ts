/** Market journal rows about its action queue, from queued to sent. Other rows state the results on chain. */
import type { SingleKind } from '../actions/action.ts'
import type { StoredPayload } from '../actions/stored-action.ts'

/**
 * A single action was added at the end of the market's queue. The `batch_cleared` row queues the parts of a batch.
 */
export interface ActionQueued {
  readonly kind: 'action_queued'
  readonly queue_no: number
  readonly action: SingleKind
  readonly payload: StoredPayload
  /** Accounts with positions that the action may change, ascending. */
  readonly touches: readonly number[]
  readonly as_of: number
}

/** The action got its id, and the relayer and nonce of its transaction. */
export interface ActionNumbered {
  readonly kind: 'action_numbered'
  readonly queue_no: number
  readonly action_id: number
  readonly relayer: string
  readonly nonce: number
}

/** A transaction of the action is stored; from now on it may be sent. */
export interface ActionSigned {
  readonly kind: 'action_signed'
  readonly queue_no: number
  readonly tx_hash: string
  readonly at: number
}

/** A single action is sent. Parts have `part_submitted`. */
export interface ActionSubmitted {
  readonly kind: 'action_submitted'
  readonly queue_no: number
  readonly action_id: number
  readonly tx_hash: string
  readonly at: number
}

/** A mined single action had no effect. */
export interface ActionFailed {
  readonly kind: 'action_failed'
  readonly queue_no: number
  readonly reason: string
}

/** Actions behind an action that will not be mined wait to be signed again with new numbers. */
export interface QueueRestarted {
  readonly kind: 'queue_restarted'
  readonly requeued: readonly number[]
  /** The next action gets the next id; null: the last id stays. */
  readonly last_action_id: number | null
  readonly at: number
}

/**
 * The contract executed actions that this exchange did not send; the next action follows the contract's last id.
 */
export interface ActionIdAdopted {
  readonly kind: 'action_id_adopted'
  readonly action_id: number
}

/** The chain has a batch that this exchange does not know; the contract accepts only greater batch ids. */
export interface BatchIdAdopted {
  readonly kind: 'batch_id_adopted'
  readonly batch_id: number
}

/**
 * The chain mined the part of a queued action after a restore had lost the action's signature. The row
 * `part_settled` follows.
 */
export interface PartAdopted {
  readonly kind: 'part_adopted'
  readonly queue_no: number
  readonly action_id: number
}

export type QueueRow =
  | ActionQueued
  | ActionNumbered
  | ActionSigned
  | ActionSubmitted
  | ActionFailed
  | QueueRestarted
  | ActionIdAdopted
  | BatchIdAdopted
  | PartAdopted

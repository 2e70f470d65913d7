/** Rows of the accounts shard: users and the bank's ledger. */
import type { RelayFailure, RelayKind, RelayStatus } from '../relays/operation.ts'
import type { RequestRow } from './request-rows.ts'
import type { SwitchRow } from './switch-rows.ts'
import type { Wei } from './wei.ts'

export interface UserCreated {
  readonly kind: 'user_created'
  readonly user_id: number
  readonly address: string
  readonly at: number
}

/** The bank's ledger changed for a reason other than a batch. */
export interface BalanceChanged {
  readonly kind: 'balance_changed'
  readonly cause: 'deposit' | 'withdrawal_request' | 'withdrawal' | 'fees_collected'
  readonly rollback: boolean
  readonly user_id: number
  readonly free_delta: Wei
  readonly pending_withdrawal_delta: Wei
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
}

/**
 * The permissions of a session key changed on chain.
 * `rollback`: `after` is the state before that change. Null: the key was never registered.
 */
export interface SessionKeyChanged {
  readonly kind: 'session_key_changed'
  readonly rollback: boolean
  readonly owner: string
  readonly key: string
  readonly before: SessionKeyState | null
  readonly after: SessionKeyState | null
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
}

/** State of a session key. Times in Unix seconds. */
export interface SessionKeyState {
  /** Bits: 1 orders, 2 margin and leverage. */
  readonly permissions: number
  readonly registered_at: number
  /** End of access in Unix seconds; later registrations do not extend it. */
  readonly expires_at: number
  readonly revoked_at: number | null
}

/**
 * Last row of a command over several shards, with the sequence of each shard.
 * Projections wait for these sequences, so the row's own sequence is a bookmark for the whole command.
 */
export interface CommandSpanned {
  readonly kind: 'command_spanned'
  readonly user_id: number
  /** Sequence by market shard. */
  readonly shards: Readonly<Record<string, number>>
  readonly at: number
}

/** The bank was paused, or its pause ended early. */
export interface BankPauseChanged {
  readonly kind: 'bank_pause_changed'
  readonly rollback: boolean
  /**
   * End of the last pause in Unix seconds, before and after the change; 0: there was none.
   * If `rollback` is true, `ends_at` is undone.
   */
  readonly before: number
  readonly ends_at: number
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
}

/** The forwarder executed the signer's next request. If `rollback` is true, its block left the chain. */
export interface ForwardRequestExecuted {
  readonly kind: 'forward_request_executed'
  readonly rollback: boolean
  readonly signer: string
  readonly nonce: number
  /** The signer's next nonce before this row. */
  readonly before: number
  /** False if the inner call failed; the nonce is used in either case. */
  readonly success: boolean
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
}

/** Signed request of a relay operation. */
export interface RelayRequest {
  readonly owner: string
  readonly target: string
  readonly gas: number
  readonly nonce: number
  readonly deadline: number
  readonly data: string
  readonly signature: string
  /** Set for `invalidate_margin_nonces`: the new minimum. */
  readonly minimum: Wei | null
}

/** A relay operation was accepted or changed its status. */
export interface RelayChanged {
  readonly kind: 'relay_changed'
  readonly operation_id: string
  readonly user_id: number
  readonly operation: RelayKind
  /** Null for `invalidate_margin_nonces`. */
  readonly session_key: string | null
  readonly market_id: number | null
  readonly status: RelayStatus
  readonly failure: RelayFailure | null
  readonly tx_hash: string | null
  readonly at: number
  /** Set only in the operation's first row. */
  readonly request?: RelayRequest
  /** Failure reason of the operation after this row; absent: null. */
  readonly reason?: string
  readonly relayer?: string
  readonly relayer_nonce?: number
  readonly block?: number
}

export type AccountsRow =
  | ForwardRequestExecuted
  | RelayChanged
  | UserCreated
  | BalanceChanged
  | SessionKeyChanged
  | BankPauseChanged
  | CommandSpanned
  | RequestRow
  | SwitchRow

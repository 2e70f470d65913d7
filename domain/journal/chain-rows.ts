/**
 * Rows about blocks with facts that other rows state. A separate shard keeps the sequences of markets and accounts, and
 * bookmarks with them, independent of blocks.
 */
import type { Mismatch } from '../settlement/receipt.ts'

/** The block follows the last block. `from`: every block from `from` up to this block has no facts. */
export interface BlockBegun {
  readonly kind: 'block_begun'
  readonly number: number
  readonly from: number
  readonly hash: string
  readonly parent_hash: string
  /** Unix seconds. */
  readonly timestamp: number
  /** True if the block itself has no facts either. */
  readonly is_empty: boolean
  /** Milliseconds. */
  readonly at: number
}

/** The facts of logs before this index are applied. */
export interface BlockAdvanced {
  readonly kind: 'block_advanced'
  readonly number: number
  readonly next_log: number
}

export interface BlockCompleted {
  readonly kind: 'block_completed'
  readonly number: number
}

/** The block left the chain, and its facts are being rolled back, newest first. */
export interface BlockLeaving {
  readonly kind: 'block_leaving'
  readonly number: number
}

/** All facts of the block are rolled back. */
export interface BlockLeft {
  readonly kind: 'block_left'
  readonly number: number
  readonly next_block: number
}

/**
 * Blocks up to `up_to` have enough confirmations. Blocks before `kept_from` can no longer be rolled back;
 * their facts are dropped.
 */
export interface BlocksConfirmed {
  readonly kind: 'blocks_confirmed'
  readonly up_to: number
  readonly kept_from: number
}

/**
 * The chain forked below the kept blocks: nothing is admitted until an operator has resolved it. Null: resolved.
 */
export interface ChainHalted {
  readonly kind: 'chain_halted'
  /** Newest block that the old and the new chain share. */
  readonly forked_at: number | null
  readonly at: number
}

/** A log of the exchange's own transaction does not match its ABI. If `rollback` is true, its block has left the chain. */
export interface LogUndecodable {
  readonly kind: 'log_undecodable'
  readonly rollback: boolean
  readonly market_id: number
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
}

/** A receipt differs from the sent transaction, or from the rules. */
export interface SettlementMismatched {
  readonly kind: 'settlement_mismatched'
  readonly market_id: number
  readonly block: number
  readonly tx_hash: string
  readonly batch_id: number | null
  readonly part: number | null
  readonly failure_kind: Mismatch['kind']
  readonly failure_reason: string
  readonly found_at: number
}

/**
 * A worker has stored a transaction with this nonce and may send it from now on.
 * The first attempt is the first signed one; later attempts replace it at a higher fee. An attempt has one hash.
 */
export interface TransactionSigned {
  readonly kind: 'transaction_signed'
  readonly relayer: string
  readonly nonce: number
  readonly attempt: number
  readonly tx_hash: string
  /** Kind of the action, or another purpose of the transaction. */
  readonly purpose: string
  readonly at: number
}

/** Transactions of the relayer with lower nonces are final; the state has dropped them. */
export interface TransactionsReleased {
  readonly kind: 'transactions_released'
  readonly relayer: string
  readonly below: number
}

export type ChainRow =
  | TransactionSigned
  | TransactionsReleased
  | BlockBegun
  | BlockAdvanced
  | BlockCompleted
  | BlockLeaving
  | BlockLeft
  | BlocksConfirmed
  | ChainHalted
  | LogUndecodable
  | SettlementMismatched

/**
 * Rows about the chain itself: the blocks whose facts the other rows state. Only the engine writes them; they are in a shard of their own, so that
 * the sequences of markets and accounts, to which bookmarks refer, do not depend on blocks.
 */
import type { Mismatch } from '../settlement/receipt.ts'

/** The block follows the last one. `from`: every block from there up to it has no facts. */
export interface BlockBegun {
  readonly kind: 'block_begun'
  readonly number: number
  readonly from: number
  readonly hash: string
  readonly parent_hash: string
  /** Unix seconds. */
  readonly timestamp: number
  /** The block itself has no facts either. */
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

/** The block has left the chain, and its facts are being taken back, the newest first. */
export interface BlockLeaving {
  readonly kind: 'block_leaving'
  readonly number: number
}

/** All facts of the block are taken back. */
export interface BlockLeft {
  readonly kind: 'block_left'
  readonly number: number
  readonly next_block: number
}

/** Blocks up to `up_to` have enough confirmations. Blocks before `kept_from` can no longer be rolled back: their facts are forgotten. */
export interface BlocksConfirmed {
  readonly kind: 'blocks_confirmed'
  readonly up_to: number
  readonly kept_from: number
}

/** The chain has forked below the blocks that are kept: nothing is admitted until an operator has resolved it. Null: it is resolved. */
export interface ChainHalted {
  readonly kind: 'chain_halted'
  /** The newest block that the old and the new chain have in common. */
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

/** A receipt differs from the transaction that the exchange has sent, or from the rules. */
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
 * A transaction with this nonce is stored by a worker, and may be sent from now on. The first attempt is the one that was signed first; later ones
 * replace it at a higher fee. An attempt has one hash.
 */
export interface TransactionSigned {
  readonly kind: 'transaction_signed'
  readonly relayer: string
  readonly nonce: number
  readonly attempt: number
  readonly tx_hash: string
  /** Kind of the action, or what else the transaction does. */
  readonly purpose: string
  readonly at: number
}

/** Transactions of the relayer with nonces below are final: the state no longer has them. */
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

/** The chain as the exchange has recorded it. */
import type { Generated } from 'kysely'

/** Recorded blocks, one hash per number. Written by: engine. */
export interface ChainBlocksTable {
  number: number
  hash: string
  parent_hash: string
  timestamp: number
}

/**
 * Every block below `next_block` is recorded and applied; `completed_at` is the time of the last pass that reached the head. Written by: indexer
 * (`head`, `completed_at`), engine.
 */
export interface ChainProgressTable {
  chain_id: number
  genesis_hash: string
  next_block: number
  head: number
  completed_at: number
  /** End of the bank's last pause in Unix seconds; 0: there was none. */
  bank_pause_ends_at: Generated<number>
}

/** Chain and bank of the exchange to which the database belongs: at most one row. Written by: api, indexer and engine, by the first that starts. */
export interface BoundExchangeTable {
  is_bound: Generated<boolean>
  chain_id: number
  margin_bank: string
}

/** Transactions whose effect on the chain is not the expected one, for an operator to resolve. Written by: engine. */
export interface SettlementMismatchesTable {
  market_id: number
  block: number
  tx_hash: string
  batch_id: number | null
  part: number | null
  failure_kind: string
  failure_reason: string
  found_at: number
}

export interface ChainTables {
  bound_exchange: BoundExchangeTable
  chain_blocks: ChainBlocksTable
  chain_progress: ChainProgressTable
  settlement_mismatches: SettlementMismatchesTable
}

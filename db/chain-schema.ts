/** What the indexer has seen on the chain. It is the only writer. */
import type { Generated } from 'kysely'

export interface ChainBlocksTable {
  number: number
  hash: string
  parent_hash: string
  timestamp: number
}

/** `shard` and `seq` point to the log row that the fact became. */
export interface ChainLogsTable {
  block: number
  log_index: number
  tx_hash: string
  address: string
  topics: string[]
  data: string
  shard: string | null
  seq: number | null
  confirmed: Generated<boolean>
}

/** Every block below `next_block` is complete; `completed_at` is the last pass that reached the head. */
export interface ChainProgressTable {
  chain_id: number
  genesis_hash: string
  next_block: number
  head: number
  completed_at: number
}

/** Transactions that did something else on the chain than they were sent for. For an operator to look into. */
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
  chain_blocks: ChainBlocksTable
  chain_logs: ChainLogsTable
  chain_progress: ChainProgressTable
  settlement_mismatches: SettlementMismatchesTable
}

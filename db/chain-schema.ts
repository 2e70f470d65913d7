/** What the indexer has recorded of the chain. */
import type { Generated } from 'kysely'

/** Recorded blocks, one hash per number. Written by: indexer, engine. */
export interface ChainBlocksTable {
  number: number
  hash: string
  parent_hash: string
  timestamp: number
}

/** Logs of the exchange's contracts. `shard` and `seq` name the journal row that the log became; null before it is applied. Written by: indexer, engine. */
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

/** Steps of the newest block that are left to apply. Steps of one stage may be applied in parallel; a stage follows the one before. Written by: indexer, engine. */
export interface ChainStepsTable {
  block: number
  step: number
  stage: number
  shards: string[]
  log_indexes: number[]
}

/** Every block below `next_block` is recorded and applied; `completed_at` is the time of the last pass that reached the head. Written by: indexer, engine. */
export interface ChainProgressTable {
  chain_id: number
  genesis_hash: string
  next_block: number
  head: number
  completed_at: number
  /** End of the bank's last pause in Unix seconds; 0: there was none. */
  bank_pause_ends_at: Generated<number>
}

/** Transactions whose effect on the chain is not the expected one, for an operator to resolve. Written by: indexer, engine. */
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
  chain_steps: ChainStepsTable
  chain_progress: ChainProgressTable
  settlement_mismatches: SettlementMismatchesTable
}

/** The tables of the engine: its journal, whose it is, the lease, and checkpoints of the state. */
import type { Generated, JSONColumnType } from 'kysely'

/** Rows that were stored together, gapless by number. Written by: engine. */
export interface EngineGroupsTable {
  number: number
  /** Token of the owner that appended the group. */
  token: number
  version: number
  rows: JSONColumnType<readonly unknown[]>
  /** Digests of the state before and after the rows, in hexadecimal digits. */
  before: string
  digest: string
}

/** One row: the token of the present owner. An append locks it, so that a takeover waits for the append. Written by: engine. */
export interface EngineOwnershipTable {
  token: number
  /** Rises when the database is restored from a backup. Written by: the owner of the database. */
  incarnation: Generated<number>
  /** The last incarnation whose engine has replayed the chain. Below `incarnation` from a restore until then. Written by: engine. */
  caught_up: Generated<number>
  /** The point in time of the restore that began the incarnation; null without one. Written by: the owner of the database. */
  restored_to: string | null
}

/** One row: how often the present owner has renewed its lease. Written by: engine. */
export interface EngineLeaseTable {
  token: number
  renewals: number
  is_released: boolean
}

/** Fences that the owner with the token has left to its successor. Written by: engine. */
export interface EngineHandoversTable {
  token: number
  fences: JSONColumnType<readonly string[]>
  refused_ms: number | null
}

/** One row: the last group that the tables of readers contain. Written by: engine, in the transaction that writes them. */
export interface EngineTablesTable {
  written: number
}

/**
 * Groups that contain rows of a shard: its rows behind the span before, up to `last_seq`, are in these groups. A write of the tables of readers has one span
 * per shard. Written by: engine.
 */
export interface JournalSpansTable {
  shard: string
  last_seq: number
  first_group: number
  last_group: number
}

/**
 * Sequences that each shard must reach for a command over several markets. `seq`: its row in the accounts shard.
 * Written by: engine.
 */
export interface SpannedCommandsTable {
  seq: number
  shards: JSONColumnType<Readonly<Record<string, number>>>
}

/** The state after a group. It counts once it is complete. Written by: engine. */
export interface EngineCheckpointsTable {
  checkpoint_id: Generated<number>
  /** The last group that the state contains. */
  number: number
  /** Version of the state's tables and their layouts. */
  state_version: number
  /** Rows that the state contains, and the latest time that a row has stated. */
  rows: number
  at: number
  /** Digest of the state, in hexadecimal digits. */
  digest: string
  is_complete: Generated<boolean>
}

/** A piece of one table of a checkpoint. Written by: engine. */
export interface EngineCheckpointChunksTable {
  checkpoint_id: number
  place: number
  /** Place of the table among the tables of the state. */
  table_no: number
  bytes: Uint8Array
}

export interface EngineTables {
  engine_checkpoints: EngineCheckpointsTable
  engine_checkpoint_chunks: EngineCheckpointChunksTable
  engine_groups: EngineGroupsTable
  engine_ownership: EngineOwnershipTable
  engine_lease: EngineLeaseTable
  engine_handovers: EngineHandoversTable
  engine_tables: EngineTablesTable
  journal_spans: JournalSpansTable
  spanned_commands: SpannedCommandsTable
}

/** The tables of the engine: its journal, whose it is, and the lease. */
import type { JSONColumnType } from 'kysely'

/** Rows that were stored together, gapless by number. Written by: keeper. */
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

/** One row: the token of the present owner. An append locks it, so that a takeover waits for the append. Written by: keeper. */
export interface EngineOwnershipTable {
  token: number
}

/** One row: how often the present owner has renewed its lease. Written by: keeper. */
export interface EngineLeaseTable {
  token: number
  renewals: number
  is_released: boolean
}

export interface EngineTables {
  engine_groups: EngineGroupsTable
  engine_ownership: EngineOwnershipTable
  engine_lease: EngineLeaseTable
}

/** The tables by which processes share their jobs. */
import type { ColumnType } from 'kysely'

/** One owner at a time; the token grows with each owner, and every write of an owner checks it. Written by: keeper. */
export interface LeasesTable {
  name: string
  owner: string
  token: number
  expires_at: number
}

/** What each running keeper announces; a row that has expired is deleted by the others. Written by: keeper. */
export interface KeepersTable {
  /** The owner of its leases. */
  owner: string
  expires_at: number
  /** Most markets that it takes; null without a bound. */
  capacity: number | null
  is_late: boolean
  /** The markets that it can run. */
  markets: ColumnType<number[], readonly number[], readonly number[]>
}

/** The leases of the indexer's processes. No write checks the token: each block is applied once, by any follower. Written by: indexer. */
export interface IndexerLeasesTable {
  name: string
  owner: string
  token: number
  expires_at: number
}

export interface LeaseTables {
  leases: LeasesTable
  indexer_leases: IndexerLeasesTable
  keepers: KeepersTable
}

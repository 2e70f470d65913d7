/** The tables by which processes share their jobs. */

/** One owner at a time; the token grows with each owner, and every write of an owner checks it. Written by: keeper. */
export interface LeasesTable {
  name: string
  owner: string
  token: number
  expires_at: number
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
}

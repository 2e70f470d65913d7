/** A projection that the exchange does not have: the number of orders that each account has placed, as a sum over all markets. */
import { sql } from 'kysely'
import type { Db } from '../../../db/client.ts'
import type { Projection } from '../../../indexer/project/projection.ts'
import { tableOf } from '../../../indexer/project/read-table.ts'
import type { ShardEntry } from '../../../indexer/project/row-change.ts'

interface PlacedCount {
  readonly user_id: number
  readonly orders: number
}

const COUNTS = tableOf<PlacedCount>({
  table: 'read.placed_counts',
  key: ['user_id'],
  columns: { user_id: 'bigint', orders: 'bigint' },
  isShared: true,
})

/** Ascending by account, as all chunks lock rows in one order. */
function countsOf(entries: readonly ShardEntry[]): PlacedCount[] {
  const placed = entries.flatMap(({ row }) => (row.kind === 'order_placed' ? [row.user_id] : []))
  const counts = Map.groupBy(placed, (userId) => userId)
  return [...counts]
    .map(([user_id, all]) => ({ user_id, orders: all.length }))
    .sort((a, b) => a.user_id - b.user_id)
}

export const placedCounts: Projection = {
  name: 'placed_counts',
  version: 1,
  tables: ['read.placed_counts'],
  project: async (_tx, entries) => ({ clauses: [COUNTS.add(countsOf(entries))] }),
}

/** What the migration of a new projection does. */
export async function createPlacedCounts(db: Db): Promise<void> {
  await sql`create table read.placed_counts (user_id bigint primary key, orders bigint not null)`.execute(db)
}

export async function readPlacedCounts(db: Db): Promise<Map<number, number>> {
  const { rows } = await sql<PlacedCount>`select * from read.placed_counts`.execute(db)
  return new Map(rows.map(({ user_id, orders }) => [user_id, orders]))
}

/** Rebuilds the read model from the journal. Every shard moves to a new epoch, so earlier bookmarks become stale. */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { lockShards, startNextEpochs } from '../../db/journal.ts'
import { type ChunkOptions, projectAll } from './project-shard.ts'
import { renumberEvents } from './read-store.ts'

const READ_TABLES = [
  'projection',
  'users',
  'markets',
  'orders',
  'order_changes',
  'fills',
  'positions',
  'balances',
  'book_levels',
  'batches',
] as const

/**
 * Empties the read model and moves every shard to its next epoch. All shards are locked meanwhile, so that no writer returns a
 * bookmark of the old epoch for a row of the new one.
 */
export async function resetReadModel(db: Db): Promise<void> {
  await db.transaction().execute(async (tx) => {
    const shards = await tx.selectFrom('shards').select('shard').execute()
    await lockShards(
      tx,
      shards.map(({ shard }) => shard),
    )
    const tables = READ_TABLES.map((table) => sql.table(`read.${table}`))
    await sql`truncate ${sql.join(tables)}`.execute(tx)
    await startNextEpochs(tx)
    await sql`insert into read.projection (shard, epoch, seq) select shard, epoch, 0 from shards`.execute(tx)
  })
}

/** Returns the number of rows that this process projected. Running projectors of other processes project the rest. */
export async function rebuild(db: Db, options: ChunkOptions): Promise<number> {
  await resetReadModel(db)
  const rows = await projectAll(db, options)
  await db.transaction().execute(renumberEvents)
  return rows
}

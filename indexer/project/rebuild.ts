/** Rebuilds the read model, or one projection of it, from the first row of the journal. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { lockShards, startNextEpochs } from '../../db/journal.ts'
import { declared, emptyTables, type FillOptions, mark } from './fill.ts'
import { projectAll } from './project-shards.ts'
import { PROJECTIONS } from './projections.ts'

/**
 * Empties the read model and starts a new epoch in every shard, so that earlier bookmarks become stale. Locks all
 * shards, so that no writer returns an old epoch for a new row.
 */
export async function resetReadModel(db: Db, projections = PROJECTIONS): Promise<void> {
  await db.transaction().execute(async (tx) => {
    const shards = await tx.selectFrom('shards').select('shard').execute()
    await lockShards(
      tx,
      shards.map(({ shard }) => shard),
    )
    await emptyTables(tx, ['read.places', ...projections.flatMap(({ tables }) => tables)])
    await startNextEpochs(tx)
    await sql`
      insert into read.places (shard, projection, epoch, version, seq, fill_to)
      select s.shard, declared.projection, s.epoch, declared.version, 0, nullif(s.head, 0)
      from shards s cross join ${declared(projections)}
    `.execute(tx)
  })
}

/** Returns the number of rows that this process projected. Running projectors of other processes project the rest. */
export async function rebuild(db: Db, options: FillOptions): Promise<number> {
  const { projections = PROJECTIONS } = options
  const names = projections.map(({ name }) => name)
  await db.transaction().execute((tx) => mark(tx, names))
  await sleep(options.markedMs ?? 0)
  await resetReadModel(db, projections)
  return projectAll(db, options)
}

const POLL_MS = 100

/** Rebuilds one projection while all other projections serve; bookmarks stay valid. Resolves when it is complete, with the help of running indexers. */
export async function rebuildProjection(db: Db, name: string, options: FillOptions): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await mark(tx, [name])
    await sql`update read.places set version = 0 where projection = ${name}`.execute(tx)
  })
  for (;;) {
    await projectAll(db, options)
    const { rows } = await sql`
      select from read.places where projection = ${name} and (version = 0 or fill_to is not null) limit 1
    `.execute(db)
    if (rows.length === 0) return
    await sleep(POLL_MS)
  }
}

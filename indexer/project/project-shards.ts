/** Projects whole shards: registers them, projects them up to their heads, and measures how far they are behind. */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { declared, type FillOptions, fillStep } from './fill.ts'
import { HeldGroups } from './held-groups.ts'
import { type ChunkOptions, projectChunk } from './project-chunk.ts'
import { PROJECTIONS } from './projections.ts'

/**
 * Inserts places of new shards and projections; returns all shards. A new projection starts outdated unless the read
 * model is new, because its tables may have rows of an earlier attempt.
 */
export async function registerShards(db: Db, projections = PROJECTIONS): Promise<string[]> {
  await sql`
    insert into read.places (shard, projection, epoch, version, seq, fill_to)
    select s.shard, declared.projection, s.epoch,
      case when stored.version is not null or not exists (select from read.places) then declared.version else 0 end,
      0, case when stored.version is null then nullif(s.head, 0) end
    from shards s cross join ${declared(projections)} left join (
      select projection, max(version) as version from read.places group by projection
    ) stored on stored.projection = declared.projection
    where coalesce(stored.version, 0) <= declared.version
    on conflict do nothing
  `.execute(db)
  const shards = await db.selectFrom('shards').select('shard').orderBy('shard').execute()
  return shards.map(({ shard }) => shard)
}

/** Projects the shards up to their heads. Returns the number of rows. */
export async function projectShards(
  db: Db,
  shards: readonly string[],
  options: ChunkOptions,
): Promise<number> {
  let rows = 0
  const held = new HeldGroups()
  for (let next = shards; next.length > 0; ) {
    const progress = await projectChunk(db, next, { ...options, held })
    rows += progress?.rows ?? 0
    next = progress?.more ?? []
  }
  return rows
}

/** Projects every shard up to its head, and fills what is behind. Returns the number of rows, without those of fills. */
export async function projectAll(db: Db, options: FillOptions): Promise<number> {
  const rows = await projectShards(db, await registerShards(db, options.projections), options)
  while ((await fillStep(db, options)).hasAdvanced) {}
  return rows
}

/** Number of journal rows that the complete projections have not projected yet, by shard. */
export async function projectionLag(db: Db): Promise<Map<string, number>> {
  const { rows } = await sql<{ shard: string; lag: number }>`
    select s.shard, s.head - coalesce(min(p.seq), 0) as lag
    from shards s left join read.places p on p.shard = s.shard and p.fill_to is null
    group by s.shard, s.head
  `.execute(db)
  return new Map(rows.map(({ shard, lag }) => [shard, lag]))
}

/**
 * Projects a shard's journal into the read model, chunk by chunk. A chunk is one transaction: the changed rows and the shard's place in
 * `read.projection`. The transaction locks that row, so one projector works on a shard at a time and each journal row is projected
 * once. Readers are notified after the commit: a `notify` inside the transaction would serialize commits.
 */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import type { JournalEntry } from '../../db/journal.ts'
import type { JournalRow } from '../../domain/journal/journal-row.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import { changesOf, entriesOf, touchedKeys } from './chunk-changes.ts'
import { loadPositionedAccounts, loadRows, saveChanges } from './read-store.ts'
import { levelDeltas, touchedAccounts } from './tables/book-levels.ts'

export interface ChunkProgress {
  readonly shard: string
  readonly epoch: number
  /** The last projected row. */
  readonly seq: number
  /** Number of rows in this chunk; 0 at the head. */
  readonly rows: number
}

export interface ChunkOptions {
  /** Most rows of one chunk. */
  readonly limit: number
  /** Called after the rows are projected and before the transaction commits. */
  readonly killPoint: KillPointHook<'before-projection'>
}

/** Projects the shard's next rows. Null if another projector has locked the shard, or the shard is not registered. */
export async function projectChunk(
  db: Db,
  shard: string,
  options: ChunkOptions,
): Promise<ChunkProgress | null> {
  const progress = await db.transaction().execute((tx) => projectRows(tx, shard, options))
  if (progress !== null && progress.rows > 0) await notifyProjected(db, progress)
  return progress
}

async function projectRows(
  tx: Tx,
  shard: string,
  { limit, killPoint }: ChunkOptions,
): Promise<ChunkProgress | null> {
  const next = await nextRows(tx, shard, limit)
  if (next === null) return null
  const { at, journal: rows } = next
  const last = rows.at(-1)
  if (last === undefined) return { ...at, rows: 0 }
  const entries = entriesOf(shard, rows)
  const marketId = entries[0]?.marketId ?? 0
  const before = await loadRows(tx, marketId, touchedKeys(entries))
  const changes = changesOf(before, entries)
  const book = { before: before.orders, orders: changes.orders, positions: changes.positions }
  const levels = levelDeltas(
    marketId,
    book,
    await loadPositionedAccounts(tx, marketId, touchedAccounts(book)),
  )
  await saveChanges(tx, { ...changes, levels }, { shard, seq: last.seq })
  killPoint('before-projection')
  return { shard, epoch: at.epoch, seq: last.seq, rows: rows.length }
}

/** Locks the shard's place in the read model and reads the journal rows after it. Null if another projector has locked it. */
async function nextRows(tx: Tx, shard: string, limit: number) {
  const { rows } = await sql<Omit<ChunkProgress, 'rows'> & { at: number | null; row: JournalRow }>`
    with place as materialized (select * from read.projection where shard = ${shard} for update skip locked)
    select place.*, next.seq as at, next.row from place left join lateral (
      select seq, row from journal where shard = place.shard and seq > place.seq order by seq limit ${limit}
    ) next on true
    order by next.seq
  `.execute(tx)
  const [first] = rows
  if (first === undefined) return null
  const journal = rows.flatMap(({ at, row }): JournalEntry[] => (at === null ? [] : [{ seq: at, row }]))
  return { at: { shard, epoch: first.epoch, seq: first.seq }, journal }
}

async function notifyProjected(db: Db, { shard, epoch, seq }: ChunkProgress): Promise<void> {
  await sql`select pg_notify('projected', ${`${shard}:${epoch}:${seq}`})`.execute(db)
}

/** Projects the shard up to its head. Returns the number of rows. */
export async function projectShard(db: Db, shard: string, options: ChunkOptions): Promise<number> {
  let rows = 0
  for (;;) {
    const progress = await projectChunk(db, shard, options)
    rows += progress?.rows ?? 0
    if (progress === null || progress.rows < options.limit) return rows
  }
}

/** Projects every shard up to its head. Returns the number of rows. */
export async function projectAll(db: Db, options: ChunkOptions): Promise<number> {
  let rows = 0
  for (const shard of await registerShards(db)) rows += await projectShard(db, shard, options)
  return rows
}

/** Inserts the place of every new shard in the read model. Returns all shards. */
export async function registerShards(db: Db): Promise<string[]> {
  await sql`
    insert into read.projection (shard, epoch, seq) select shard, epoch, 0 from shards on conflict do nothing
  `.execute(db)
  const shards = await db.selectFrom('shards').select('shard').orderBy('shard').execute()
  return shards.map(({ shard }) => shard)
}

/** Number of journal rows that are not projected yet, by shard. */
export async function projectionLag(db: Db): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('shards')
    .leftJoin('read.projection as projection', 'projection.shard', 'shards.shard')
    .select(['shards.shard', sql<number>`shards.head - coalesce(projection.seq, 0)`.as('lag')])
    .execute()
  return new Map(rows.map(({ shard, lag }) => [shard, lag]))
}

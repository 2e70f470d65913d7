/**
 * Follows the journal and keeps the read model at its head. A chunk is one transaction: its rows and the shard's place in
 * `read.projection`. The row in `read.projection` is locked meanwhile, so of many projectors one works on a shard at a time, and each
 * row is projected once. Readers are notified after it: a notification in it would make commits queue for the disk one by one.
 */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import type { JournalEntry } from '../../db/journal.ts'
import type { JournalRow } from '../../domain/journal/journal-row.ts'
import { changesOf, entriesOf, touchedKeys } from './chunk-changes.ts'
import { loadRows, saveChanges } from './read-store.ts'

export interface ChunkProgress {
  readonly shard: string
  readonly epoch: number
  /** Last projected. */
  readonly seq: number
  /** Rows in this chunk; 0 at the head. */
  readonly rows: number
  /** Its next row tells of other shards that are not projected so far: it goes on when they are. */
  readonly isWaiting: boolean
}

export interface ChunkOptions {
  /** Most rows of one chunk. */
  readonly limit: number
  /** Told after the rows are projected and before the transaction commits. */
  readonly reached: (point: 'before-projection') => void
}

/** Projects the shard's next rows. Null where another projector is at it, or the shard is not registered. */
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
  { limit, reached }: ChunkOptions,
): Promise<ChunkProgress | null> {
  const next = await nextRows(tx, shard, limit)
  if (next === null) return null
  const { at, logged } = next
  const rows = await projectableRows(tx, logged)
  const isWaiting = rows.length < logged.length
  const last = rows.at(-1)
  if (last === undefined) return { ...at, rows: 0, isWaiting }
  const entries = entriesOf(shard, rows)
  const before = await loadRows(tx, entries[0]?.marketId ?? 0, touchedKeys(entries))
  await saveChanges(tx, changesOf(before, entries), { shard, seq: last.seq })
  reached('before-projection')
  return { shard, epoch: at.epoch, seq: last.seq, rows: rows.length, isWaiting }
}

/** Takes the shard's place in the read model, and reads what its log has behind it. Null where another has taken it. */
async function nextRows(tx: Tx, shard: string, limit: number) {
  const { rows } = await sql<
    Omit<ChunkProgress, 'rows' | 'isWaiting'> & { at: number | null; row: JournalRow }
  >`
    with place as materialized (select * from read.projection where shard = ${shard} for update skip locked)
    select place.*, logged.seq as at, logged.row from place left join lateral (
      select seq, row from journal where shard = place.shard and seq > place.seq order by seq limit ${limit}
    ) logged on true
    order by logged.seq
  `.execute(tx)
  const [first] = rows
  if (first === undefined) return null
  const logged = rows.flatMap(({ at, row }): JournalEntry[] => (at === null ? [] : [{ seq: at, row }]))
  return { at: { shard, epoch: first.epoch, seq: first.seq }, logged }
}

/** The rows before the first that must wait for other shards. */
async function projectableRows(tx: Tx, logged: readonly JournalEntry[]): Promise<readonly JournalEntry[]> {
  if (logged.every(({ row }) => row.kind !== 'command_spanned')) return logged
  const projected = await tx.selectFrom('read.projection').select(['shard', 'seq']).execute()
  const reached = new Map(projected.map(({ shard, seq }) => [shard, seq]))
  const waits = ({ row }: JournalEntry): boolean =>
    row.kind === 'command_spanned' &&
    Object.entries(row.shards).some(([shard, seq]) => (reached.get(shard) ?? 0) < seq)
  const first = logged.findIndex(waits)
  return first < 0 ? logged : logged.slice(0, first)
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
  const shards = await registerShards(db)
  let total = 0
  for (;;) {
    let rows = 0
    for (const shard of shards) rows += await projectShard(db, shard, options)
    total += rows
    // A shard that waited for others may go on now.
    if (rows === 0) return total
  }
}

/** Gives every new shard its place in the read model. Returns all shards. */
export async function registerShards(db: Db): Promise<string[]> {
  await sql`
    insert into read.projection (shard, epoch, seq) select shard, epoch, 0 from shards on conflict do nothing
  `.execute(db)
  const shards = await db.selectFrom('shards').select('shard').orderBy('shard').execute()
  return shards.map(({ shard }) => shard)
}

/** Rows of the log that are not projected yet, by shard. */
export async function projectionLag(db: Db): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('shards')
    .leftJoin('read.projection as projection', 'projection.shard', 'shards.shard')
    .select(['shards.shard', sql<number>`shards.head - coalesce(projection.seq, 0)`.as('lag')])
    .execute()
  return new Map(rows.map(({ shard, lag }) => [shard, lag]))
}

/**
 * The tables `shards` and `journal`. A shard's journal has no gaps, because the engine assigns each row's sequence and stores it with the tables
 * that follow it.
 */
import { sql } from 'kysely'
import { invariant } from '../domain/invariant.ts'
import { CHAIN_SHARD, type JournalRow } from '../domain/journal/journal-row.ts'
import type { Db, Tx } from './client.ts'
import type { Statement } from './round-trip.ts'
import { anyOf } from './values.ts'

export interface ShardHead {
  readonly shard: string
  readonly epoch: number
  readonly head: number
}

/** The id of a shard in bookmarks. A rebuilt or restored shard has another epoch, so older bookmarks are stale. */
export const shardId = ({ shard, epoch }: { shard: string; epoch: number }): string => `${shard}.${epoch}`

/** Locks several shards in the required order. */
export async function lockShards(tx: Tx, shards: readonly string[]): Promise<Map<string, ShardHead>> {
  const wanted = new Set(shards)
  if (wanted.size === 0) return new Map()
  // In the order of code units, in which `sort` of other callers puts them, whatever the database's collation.
  const heads = await tx
    .selectFrom('shards')
    .selectAll()
    .where('shard', '=', anyOf('text', wanted))
    .orderBy(sql`shard collate "C"`)
    .forUpdate()
    .execute()
  const found = new Map(heads.map((head) => [head.shard, head]))
  const missing = [...wanted].filter((shard) => !found.has(shard))
  invariant(missing.length === 0, `every locked shard exists, received ${missing.join(', ')}`)
  return found
}

/** Notified with `<shard>:<head>` when rows have been appended; `:batch` follows if a batch has cleared. */
export const JOURNAL_CHANNEL = 'journal'
export const BATCH_NOTICE = 'batch'
/** Notified with `<shard>` when a read waits until its rows are projected. */
export const BOOKMARK_CHANNEL = 'bookmark'

export const hasBatch = (rows: readonly JournalRow[]): boolean =>
  rows.some(({ kind }) => kind === 'batch_cleared')

/** A row with its place. */
export interface PlacedRow {
  readonly shard: string
  readonly seq: number
  readonly row: JournalRow
}

export const APPEND_PLACED_NAME = 'append-placed'

const APPEND_PLACED = `
  with placed as materialized (
    select * from json_to_recordset($1::json) as x (shard text, seq bigint, "row" json)
  ), inserted as (
    insert into journal (shard, seq, row) select shard, seq, "row" from placed
  )
  insert into shards (shard, head) select shard, max(seq) from placed where shard <> '${CHAIN_SHARD}' group by shard
  on conflict (shard) do update set head = excluded.head
`

/**
 * Appends rows whose places the engine has assigned; its ownership excludes other writers. The chain's rows are in the journal for those
 * that fold it, but the chain has no row in `shards`: it is not projected, and no bookmark names it.
 */
export const appendPlacedQuery = (rows: readonly PlacedRow[]): Statement => ({
  name: APPEND_PLACED_NAME,
  text: APPEND_PLACED,
  values: [JSON.stringify(rows)],
})

/** Payloads for `JOURNAL_CHANNEL`, one per shard. */
export function journalNotices(rows: readonly PlacedRow[]): string[] {
  const notices: string[] = []
  for (const [shard, own] of Map.groupBy(rows, (placed) => placed.shard)) {
    if (shard === CHAIN_SHARD) continue
    const suffix = hasBatch(own.map(({ row }) => row)) ? `:${BATCH_NOTICE}` : ''
    notices.push(`${shard}:${(own.at(-1) as PlacedRow).seq}${suffix}`)
  }
  return notices
}

/** Moves every shard to its next epoch: bookmarks of earlier epochs become stale. The caller holds the locks of all shards. */
export async function startNextEpochs(tx: Tx): Promise<void> {
  await sql`update shards set epoch = epoch + 1`.execute(tx)
}

export interface JournalEntry {
  readonly seq: number
  readonly row: JournalRow
}

/** Rows after `after`, oldest first. */
export async function readRows(
  db: Db | Tx,
  shard: string,
  after: number,
  limit: number,
): Promise<JournalEntry[]> {
  return db
    .selectFrom('journal')
    .select(['seq', 'row'])
    .where('shard', '=', shard)
    .where('seq', '>', after)
    .orderBy('seq')
    .limit(limit)
    .execute()
}

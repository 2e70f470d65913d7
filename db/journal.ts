/**
 * Each shard's journal: rows in `engine_groups`, found by `journal_spans`, with heads in `shards`. The engine assigns
 * sequences without gaps. It ends where readers' tables end.
 */
import { type RawBuilder, sql } from 'kysely'
import { invariant } from '../domain/invariant.ts'
import { CHAIN_SHARD, type JournalRow } from '../domain/journal/journal-row.ts'
import type { Db, Tx } from './client.ts'
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

/** A shard with rows in some groups, and the last sequence among them. */
export interface ShardEnd {
  readonly shard: string
  readonly seq: number
}

/** `rows` are those of successive groups, in their order. */
export const shardEnds = (rows: readonly PlacedRow[]): ShardEnd[] =>
  [...new Map(rows.map(({ shard, seq }) => [shard, seq]))].map(([shard, seq]) => ({ shard, seq }))

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

/** Rows of a group as a table expression over `engine_groups g`. */
const PLACED_ROWS = sql`json_to_recordset(g.rows) as placed (shard text, seq bigint, "row" json)`

/**
 * Condition on `journal_spans s`: the span has rows of the shard behind `after`, up to `until`. It reads as many entries of the index as there are such
 * spans, and one more.
 */
export const isSpanWithin = (
  shard: RawBuilder<unknown>,
  after: RawBuilder<unknown>,
  until: RawBuilder<unknown>,
) => sql<boolean>`s.shard = ${shard} and s.last_seq > ${after} and s.last_seq <= coalesce(
  (select min(e.last_seq) from journal_spans e where e.shard = ${shard} and e.last_seq >= ${until}), 9223372036854775807
)`

/** Rows after `after`, oldest first. */
export async function readRows(
  db: Db | Tx,
  shard: string,
  after: number,
  limit: number,
): Promise<JournalEntry[]> {
  const until = after + limit
  const { rows } = await sql<JournalEntry>`
    select placed.seq, placed.row
    from journal_spans s join engine_groups g on g.number between s.first_group and s.last_group
    cross join lateral ${PLACED_ROWS}
    where ${isSpanWithin(sql`${shard}::text`, sql`${after}::bigint`, sql`${until}::bigint`)}
      and placed.shard = ${shard} and placed.seq > ${after}::bigint and placed.seq <= ${until}::bigint
    order by placed.seq
  `.execute(db)
  return rows
}

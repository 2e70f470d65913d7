/** Reads the feed of the read model: its state, its rows, and the last row of a topic. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import type { FeedTable } from '../../db/feed-schema.ts'

export type StoredRow = Omit<FeedTable, 'levels' | 'balances'> & {
  readonly levels: string | null
  readonly balances: string | null
}

export interface FeedRead {
  readonly epoch: number
  /** The last row of the feed. */
  readonly head: number
  /** Rows up to this seq are deleted, or of earlier epochs. */
  readonly floor: number
  readonly rows: readonly StoredRow[]
}

/** Bytes of changes after which a read ends: a batch of 800 orders has about one megabyte. */
const PAGE_BYTES = 8_000_000

/** The next rows after `seq`, in order, and the state of the feed: one statement, so one snapshot. */
export async function feedAfter(db: Db, seq: number, limit: number): Promise<FeedRead> {
  const { rows } = await sql<Omit<FeedRead, 'rows'> & (StoredRow | { seq: null })>`
    select s.epoch, s.seq as head, greatest(s.first_seq, coalesce((select min(seq) - 1 from read.feed), s.seq)) as floor, f.*
    from read.feed_state s left join lateral (
      select seq, at, shard, shard_epoch, shard_seq, batch_id, heads, levels::text, balances::text, changes from (
        select *, sum(octet_length(changes)) over (order by seq) - octet_length(changes) as bytes_before from (
          select * from read.feed where seq > greatest(${seq}::bigint, s.first_seq) order by seq limit ${limit}
        ) next
      ) sized
      where bytes_before < ${PAGE_BYTES} order by seq
    ) f on true
  `.execute(db)
  const [first] = rows
  if (first === undefined) return { epoch: 0, head: 0, floor: 0, rows: [] }
  const { epoch, head, floor } = first
  return { epoch, head, floor, rows: first.seq === null ? [] : (rows as StoredRow[]) }
}

/** Where the feed stands in the snapshot of `tx`, and the last row that concerns the topic; 0 if none does. */
export async function topicState(
  tx: Tx,
  topic: string,
): Promise<{ readonly epoch: number; readonly head: number; readonly seq: number }> {
  const { rows } = await sql<{ epoch: number; head: number; seq: number }>`
    select s.epoch, s.seq as head, coalesce((select seq from read.feed_heads where topic = ${topic}), 0) as seq
    from read.feed_state s
  `.execute(tx)
  return rows[0] ?? { epoch: 0, head: 0, seq: 0 }
}

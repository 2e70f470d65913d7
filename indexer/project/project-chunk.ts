/**
 * Projects a shard's journal into the read model, chunk by chunk. A chunk is one transaction: the changed rows and the places of its
 * projections in `read.places`. The transaction locks these places, so each journal row is projected once per projection. Projections
 * that are less than a chunk apart share their chunks: one read of the journal, one write. Readers are notified after the commit: a
 * `notify` inside the transaction would serialize commits.
 */
import { CompiledQuery, sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { hasBatch, type JournalEntry, readRows } from '../../db/journal.ts'
import { pipelined, together } from '../../db/pipeline.ts'
import type { PlacesTable } from '../../db/read-schema.ts'
import { committing } from '../../db/transaction-client.ts'
import { invariant } from '../../domain/invariant.ts'
import { type JournalRow, marketShard } from '../../domain/journal/journal-row.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import { type Announcer, announce } from './announcer.ts'
import { afterFirstBatch, beforeLastBatch, MOST_BEYOND } from './batch-bounds.ts'
import { FEED_ROW, type FeedChunk, feedClauses, keepValues } from './feed.ts'
import type { ChunkWrites, Projection } from './projection.ts'
import { PROJECTIONS } from './projections.ts'
import type { WriteClause } from './read-table.ts'
import type { ShardEntry } from './row-change.ts'

export interface ChunkProgress {
  readonly shard: string
  readonly epoch: number
  /** The last projected row. */
  readonly seq: number
  /** Number of rows in this chunk; 0 at the head. */
  readonly rows: number
  /** The journal may have further rows. */
  readonly hasMore: boolean
  readonly projections: readonly string[]
  /** The number of its row in the feed; null if it changed nothing for readers. */
  readonly feedSeq: number | null
  readonly hasBatch: boolean
}

export interface ChunkOptions {
  /** Most rows of one chunk, unless a single batch has more: see `batch-bounds.ts`. */
  readonly limit: number
  /** Called after the changes are computed and before they are written. */
  readonly killPoint: KillPointHook<'before-projection'>
  /** All projections, unless set. Places of other versions stay as they are. */
  readonly projections?: readonly Projection[]
  /** Announces the chunk after the commit. Without one, the chunk is announced before its projection resolves. */
  readonly announcer?: Announcer
}

/**
 * Projects the shard's next rows into the projections that are less than a chunk behind the foremost. The others are filled by
 * `catchUp`. Null if another projector works on the shard, or the shard is not registered.
 */
export function projectChunk(db: Db, shard: string, options: ChunkOptions): Promise<ChunkProgress | null> {
  const { limit, projections = PROJECTIONS } = options
  const known = versionsOf(projections)
  // One projector at a time, so that the projections stay together: skipping locked places, two projectors could divide them.
  const places = sql`
    select * from read.places
    where (select pg_try_advisory_xact_lock(hashtextextended(${`projection ${shard}`}, 0)))
      and shard = ${shard} and projection || ' ' || version = any(${known})
      and seq >= (
        select max(seq) from read.places where shard = ${shard} and projection || ' ' || version = any(${known})
      ) - ${limit}::bigint
    for update skip locked
  `
  return project(db, places, options)
}

/** Projects the shard's next rows into one projection. Null if another projector has locked its place. */
export function projectAlone(
  db: Db,
  shard: string,
  projection: Projection,
  options: ChunkOptions,
): Promise<ChunkProgress | null> {
  const places = sql`
    select * from read.places
    where shard = ${shard} and projection = ${projection.name} and version = ${projection.version}
    for update skip locked
  `
  return project(db, places, { ...options, projections: [projection] })
}

/** A projection and its version, as `projection || ' ' || version` in SQL. */
export const versionsOf = (projections: readonly Projection[]): string[] =>
  projections.map(({ name, version }) => `${name} ${version}`)

async function project(
  db: Db,
  places: ReturnType<typeof sql>,
  options: ChunkOptions,
): Promise<ChunkProgress | null> {
  const progress = await db
    .transaction()
    .execute((opened) => pipelined(opened, (tx) => projectRows(tx, places, options)))
  if (progress === null || progress.rows === 0) return progress
  if (options.announcer === undefined) await announce(db, [progress])
  else options.announcer.add(progress)
  return progress
}

async function projectRows(
  tx: Tx,
  query: ReturnType<typeof sql>,
  { limit, killPoint, projections = PROJECTIONS }: ChunkOptions,
): Promise<ChunkProgress | null> {
  const { places, journal: found } = await nextRows(tx, query, limit)
  const [place] = places
  if (place === undefined) return null
  const { shard, epoch } = place
  const behind = Math.min(...places.map(({ seq }) => seq))
  const front = Math.max(...places.map(({ seq }) => seq))
  const isFull = found.length === limit
  const journal = isFull ? await wholeBatches(tx, { shard, after: behind, limit, front }, found) : found
  const progress = { shard, epoch, projections: places.map(({ projection }) => projection) }
  const last = journal.at(-1)
  if (last === undefined)
    return { ...progress, seq: behind, rows: 0, hasMore: false, feedSeq: null, hasBatch: false }
  invariant(
    last.seq === behind + journal.length,
    `the journal of ${shard} lacks ${last.seq - behind - journal.length} rows between row ${behind} and row ${last.seq}`,
  )
  invariant(
    last.seq >= front,
    `a chunk of ${shard} ends at row ${last.seq}, before the place ${front} of a projection`,
  )
  const placeOf = new Map(places.map((each) => [each.projection, each]))
  const entries = entriesOf(shard, journal)
  // Together, so that a pipelined connection sends what they read in one write. Each has sent all it reads when it settles.
  const projected = await Promise.allSettled(
    projections.map(async ({ name, project }) => {
      const at = placeOf.get(name)
      const own = entries.slice((at?.seq ?? last.seq) - behind)
      if (own.length === 0) return []
      const { feed, ...rest } = await project(tx, own)
      // A table that is being filled changes nothing for readers, who do not see it.
      return [feed !== undefined && at?.fill_to === null ? { ...rest, feed } : rest]
    }),
  )
  const writes = projected.flatMap((each) => {
    if (each.status === 'rejected') throw each.reason
    return each.value
  })
  killPoint('before-projection')
  const feedSeq = await save(tx, writes, { ...progress, seq: last.seq, entries })
  return {
    ...{ ...progress, seq: last.seq, rows: journal.length, hasMore: isFull, feedSeq },
    hasBatch: hasBatch(journal.map(({ row }) => row)),
  }
}

/** Locks the places and reads the journal rows after the last of them. */
async function nextRows(tx: Tx, places: ReturnType<typeof sql>, limit: number) {
  const { rows } = await sql<{ seq: null; row: PlacesTable[] | null } | JournalEntry>`
    with place as materialized (${places})
    select null::bigint as seq, json_agg(place) as row from place
    union all
    select next.seq, next.row
    from (select shard, min(seq) as seq from place group by shard) first
    cross join lateral (
      select seq, row from journal where shard = first.shard and seq > first.seq order by seq limit ${limit}
    ) next
    order by seq nulls first
  `.execute(tx)
  const [locked, ...journal] = rows
  return {
    places: (locked?.row as PlacesTable[] | null) ?? [],
    journal: journal as JournalEntry[],
  }
}

interface FullChunk {
  readonly shard: string
  /** The row before the first one. */
  readonly after: number
  readonly limit: number
  /** The place of the foremost projection: the chunk does not end before it. */
  readonly front: number
}

/** The rows of a full chunk, without the batch with which it ends, or with all of it if the chunk has no other rows. */
async function wholeBatches(
  tx: Tx,
  { shard, after, limit, front }: FullChunk,
  found: readonly JournalEntry[],
): Promise<readonly JournalEntry[]> {
  const count = beforeLastBatch(found.map(({ row }) => row))
  // The foremost projection has ended a chunk within these rows: they are no single batch.
  if (after + count < front) return found
  if (count > 0) return found.slice(0, count)
  const more = await readRows(tx, shard, after, limit + MOST_BEYOND)
  return more.slice(0, Math.max(limit, afterFirstBatch(more.map(({ row }) => row))))
}

/** The market of a shard `m<id>`; 0 for `accounts`. */
const marketOf = (shard: string): number => {
  const marketId = Number(shard.slice(1))
  return shard === marketShard(marketId) ? marketId : 0
}

function entriesOf(shard: string, rows: readonly { seq: number; row: JournalRow }[]): ShardEntry[] {
  const marketId = marketOf(shard)
  return rows.map(({ seq, row }) => ({ shard, marketId, seq, row }))
}

/** Longest pause between two statements once shared rows are locked: a projector that stops there must not stop the others. */
const IDLE_TIMEOUT_MS = 2_000

/**
 * Writes a chunk's rows and places in one statement: the cost of a small chunk is mostly the number of its statements. The commit does not
 * wait for the disk (`synchronous_commit` off): rows lost in a crash are projected again. The row of the feed, which all shards number,
 * comes last: in the same statement, or in a further one if anything must run in between, which is sent without waiting for the results of
 * those before it. The last statement is the transaction's, too (`committing`). Returns the number of the feed's row.
 */
export async function save(
  tx: Tx,
  writes: readonly ChunkWrites[],
  chunk: Omit<ChunkProgress, 'rows' | 'hasMore' | 'feedSeq' | 'hasBatch'> & FeedChunk,
): Promise<number | null> {
  for (const { before } of writes) await before?.(tx)
  const { shard, seq, projections } = chunk
  const parts = writes.flatMap((write) => write.feed ?? [])
  const after = writes.flatMap((write) => write.after ?? [])
  const last = writes.flatMap((write) => write.last ?? [])
  const isTwo = last.length > 0 || after.length > 0
  const feed = feedClauses(parts, chunk, { areKept: isTwo })
  const returned = isTwo ? keepValues(parts) : feedSeqOf(feed)
  const clauses = [...writes.flatMap((write) => write.clauses), ...(isTwo ? [] : feed)]
  const written = run<FeedSeq>(tx, clauses, {
    commits: !isTwo,
    values: [shard, seq, projections],
    text: `
      update read.places set seq = $2::bigint from (
        select set_config('synchronous_commit', 'off', true),
          set_config('idle_in_transaction_session_timeout', '${IDLE_TIMEOUT_MS}', true)
      ) settings
      where shard = $1::text and projection = any($3::text[])
      returning ${returned}
    `,
  })
  if (!isTwo) return (await written).rows[0]?.feed_seq ?? null
  const between = after.map((statement) => tx.executeQuery(statement.compile(tx)))
  const text = `select ${feedSeqOf(feed)}`
  const appended = run<FeedSeq>(tx, [...last, ...feed], { commits: true, values: [], text })
  await together([written, ...between, appended])
  return (await appended).rows[0]?.feed_seq ?? null
}

interface FeedSeq {
  readonly feed_seq: number | null
}

const feedSeqOf = (feed: readonly WriteClause[]): string =>
  `${feed.length > 0 ? `(select seq from ${FEED_ROW})` : 'null::bigint'} as feed_seq`

/** Runs the clauses with the statement. Shared clauses run one after the other, so that all projectors lock rows in one order. */
function run<Row>(
  tx: Tx,
  clauses: readonly WriteClause[],
  statement: { readonly commits: boolean; readonly text: string; readonly values: readonly unknown[] },
) {
  const values = [...statement.values]
  const shared: string[] = []
  const parts = clauses
    .filter(({ parameters }) => parameters.some((parameter) => parameter !== '{}'))
    .map(({ name, text, parameters, isShared }) => {
      const condition = shared.map((earlier) => `(select count(*) from ${earlier}) >= 0`).join(' and ')
      const part = `${name} as (${text(values.length + 1, condition || 'true')})`
      values.push(...parameters)
      if (isShared) shared.push(name)
      return part
    })
  const text = `${parts.length > 0 ? `with ${parts.join()}` : ''} ${statement.text}`
  return tx.executeQuery<Row>(CompiledQuery.raw(statement.commits ? committing(text) : text, values))
}

/**
 * Projects the journals of many shards into the read model. A chunk is one transaction over the changed rows and the
 * locked places, so each journal row is projected once per projection.
 */
import { CompiledQuery, type RawBuilder } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { pipelined, together } from '../../db/pipeline.ts'
import { committing } from '../../db/transaction-client.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import { type Announcer, announce, type ProjectedChunk } from './announcer.ts'
import { type FeedShard, feedClauses, feedRows, keepValues, LAST_FEED_SEQ } from './feed.ts'
import type { HeldGroups } from './held-groups.ts'
import { nextShards, type PlaceScope, type ShardChunk } from './next-shards.ts'
import type { ChunkWrites, Projection } from './projection.ts'
import { PROJECTIONS } from './projections.ts'
import type { WriteClause } from './read-table.ts'
import type { ShardEntry } from './row-change.ts'

export interface ChunkProgress {
  /** Number of rows in this chunk; 0 at the heads. */
  readonly rows: number
  /** The journals of these shards have further rows. */
  readonly more: readonly string[]
  /** The shards that advanced. */
  readonly shards: readonly ShardProgress[]
  /** The number of its last row in the feed; null if it changed nothing for readers. */
  readonly feedSeq: number | null
}

export interface ShardProgress extends ProjectedChunk {
  /** Number of its rows in the chunk. */
  readonly rows: number
  readonly entries: readonly ShardEntry[]
}

export interface ChunkOptions {
  /** Most rows of one chunk, unless a single batch has more: see `batch-bounds.ts`. Shards with few rows leave their share to other shards. */
  readonly limit: number
  /** Called after the changes are computed and before they are written. */
  readonly killPoint: KillPointHook<'before-projection'>
  /** All projections, unless set. Places of other versions stay as they are. */
  readonly projections?: readonly Projection[]
  /** Groups of the journal that chunks before have read. */
  readonly held?: HeldGroups
  /** Announces the chunk after the commit. Without one, the chunk is announced before its projection resolves. */
  readonly announcer?: Announcer
}

/** Options of the one projector (`projector.ts`). */
export interface SoleChunkOptions extends ChunkOptions {
  /** True: only one transaction of all projectors runs at a time. */
  readonly isSole?: boolean
  /** Places that the chunk leaves out, as `<shard> <projection>`. */
  readonly except?: readonly string[]
}

/**
 * Projects the next rows into projections less than a chunk behind the foremost; `fill.ts` fills the rest. Null if all
 * shards with rows are locked. Rejects with `OtherProjectorError`.
 */
export function projectChunk(
  db: Db,
  shards: readonly string[],
  options: SoleChunkOptions,
): Promise<ChunkProgress | null> {
  const { limit, projections = PROJECTIONS, isSole = false, except = [] } = options
  const known = versionsOf(projections)
  return project(db, { shards, limit, known, isSole, except, held: options.held }, options)
}

/** Projects the next rows of the shards into one projection. Null if another projector has locked its places. */
export function projectAlone(
  db: Db,
  shards: readonly string[],
  projection: Projection,
  options: ChunkOptions,
): Promise<ChunkProgress | null> {
  const { limit, held } = options
  const scope = { shards, limit, known: versionsOf([projection]), isAlone: true, held }
  return project(db, scope, { ...options, projections: [projection] })
}

/** A projection and its version, as `projection || ' ' || version` in SQL. */
const versionsOf = (projections: readonly Projection[]): string[] =>
  projections.map(({ name, version }) => `${name} ${version}`)

async function project(db: Db, scope: PlaceScope, options: ChunkOptions): Promise<ChunkProgress | null> {
  const progress = await db
    .transaction()
    .execute((opened) => pipelined(opened, (tx) => projectRows(tx, scope, options)))
  for (const chunk of progress?.shards ?? []) options.announcer?.add(chunk)
  if (options.announcer === undefined && progress !== null && progress.rows > 0)
    await announce(db, progress.shards)
  return progress
}

const NOTHING: ChunkProgress = { rows: 0, more: [], shards: [], feedSeq: null }

async function projectRows(
  tx: Tx,
  scope: PlaceScope,
  { killPoint, projections = PROJECTIONS }: ChunkOptions,
): Promise<ChunkProgress | null> {
  const shards = await nextShards(tx, scope)
  if (shards === null) return null
  if (shards.length === 0) return NOTHING
  // Together, so that a pipelined connection sends what they read in one write. Each has sent all it reads when it settles.
  const writes = (await together(projections.map((each) => changesOf(tx, each, shards)))).flat()
  killPoint('before-projection')
  const feedSeqs = await save(tx, writes, shards)
  const last = Math.max(...feedSeqs.values())
  return {
    rows: shards.reduce((rows, { entries }) => rows + entries.length, 0),
    more: shards.filter(({ hasMore }) => hasMore).map(({ shard }) => shard),
    shards: shards.map(({ shard, epoch, seq, projections: names, entries }) => ({
      shard,
      epoch,
      seq,
      projections: names,
      rows: entries.length,
      entries,
      feedSeq: feedSeqs.get(shard) ?? null,
      hasBatch: entries.some(({ row }) => row.kind === 'batch_cleared'),
    })),
    feedSeq: feedSeqs.size === 0 ? null : last,
  }
}

/** Changes of one projection for the shards' rows. */
async function changesOf(
  tx: Tx,
  { name, project }: Projection,
  shards: readonly ShardChunk[],
): Promise<ChunkWrites[]> {
  const entries = shards.flatMap(({ placeOf, entries }) => {
    const place = placeOf(name)
    return place === undefined ? [] : entries.filter(({ seq }) => seq > place.seq)
  })
  if (entries.length === 0) return []
  const { feed, ...rest } = await project(tx, entries)
  if (feed === undefined) return [rest]
  // A table that is being filled changes nothing for readers, who do not see it.
  const shown = new Set(
    shards.filter(({ placeOf }) => placeOf(name)?.fill_to === null).map(({ marketId }) => marketId),
  )
  return [{ ...rest, feed: feed.filter(({ marketId }) => shown.has(marketId)) }]
}

/** A shard's part of what a chunk writes. */
export interface SavedShard extends FeedShard {
  readonly projections: readonly string[]
}

/**
 * Writes a chunk's rows and places in one statement, because small chunks cost mostly round trips. Returns each shard's
 * feed row number.
 */
export async function save(
  tx: Tx,
  writes: readonly ChunkWrites[],
  shards: readonly SavedShard[],
): Promise<Map<string, number>> {
  for (const { before } of writes) await before?.(tx)
  const after = writes.flatMap((write) => write.after ?? [])
  // The feed's rows come last, because all projectors number them: in the same statement, or in a second one if another
  // statement must run in between. Each is sent without waiting for results.
  const isTwo = after.length > 0
  const rows = feedRows(
    writes.flatMap((write) => write.feed ?? []),
    shards,
  )
  const feed = feedClauses(rows, { areKept: isTwo })
  const lastSeq = `${rows.length > 0 ? LAST_FEED_SEQ : 'null::bigint'} as last_seq`
  const clauses = [...writes.flatMap((write) => write.clauses), ...(isTwo ? [] : feed)]
  // The commit does not wait for the disk: rows lost in a crash are projected again.
  const moved = movePlaces(shards, isTwo ? keepValues(rows) : lastSeq)
  const written = run<LastSeq>(tx, clauses, { ...moved, commits: !isTwo })
  const between = after.map((statement) => execute(tx, statement))
  const text = `select ${lastSeq}`
  const appended = isTwo ? run<LastSeq>(tx, feed, { commits: true, values: [], text }) : written
  await together([written, ...between, appended])
  const seq = (await appended).rows[0]?.last_seq ?? 0
  return new Map(rows.map(({ shard, back }) => [shard.shard, seq - back]))
}

interface LastSeq {
  readonly last_seq: number | null
}

const execute = (tx: Tx, statement: RawBuilder<unknown>) => tx.executeQuery(statement.compile(tx))

/** The end of the chunk's statement, which moves the places. */
function movePlaces(shards: readonly SavedShard[], returned: string) {
  const places = shards.flatMap(({ shard, seq, projections }) =>
    projections.map((projection) => ({ shard, seq, projection })),
  )
  return {
    values: [
      places.map(({ shard }) => shard),
      places.map(({ projection }) => projection),
      places.map(({ seq }) => seq),
    ],
    parts: [
      `"moved places" as (
        update read.places p set seq = moved.seq
        from unnest($1::text[], $2::text[], $3::bigint[]) as moved (shard, projection, seq)
        where p.shard = moved.shard and p.projection = moved.projection
      )`,
    ],
    text: `select set_config('synchronous_commit', 'off', true), ${returned}`,
  }
}

interface FinalStatement {
  /** Sent with the commit. */
  readonly commits: boolean
  /** Clauses whose parameters are `values`. */
  readonly parts?: readonly string[]
  readonly text: string
  readonly values: readonly unknown[]
}

/** Runs the clauses with the statement. Shared clauses run one after the other, so that all projectors lock rows in one order. */
function run<Row>(tx: Tx, clauses: readonly WriteClause[], statement: FinalStatement) {
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
  const all = [...(statement.parts ?? []), ...parts]
  const text = `${all.length > 0 ? `with ${all.join()}` : ''} ${statement.text}`
  return tx.executeQuery<Row>(CompiledQuery.raw(statement.commits ? committing(text) : text, values))
}

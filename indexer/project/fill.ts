/**
 * Fills projections from the journal while others serve: new projections, those with a higher version in the code, and
 * rebuilds ordered by an operator.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { isOfRows } from './chunk-errors.ts'
import { startFeedEpoch } from './feed.ts'
import { type ChunkOptions, projectAlone } from './project-chunk.ts'
import type { Projection } from './projection.ts'
import { PROJECTIONS } from './projections.ts'
import { placeName, type StoppedPlace } from './stopped.ts'

/**
 * The `markedMs` of a database with readers. It exceeds the age up to which an API process relies on a projection's state
 * (`api/read-after/completeness.ts`) plus the duration of a read.
 */
export const MARKED_MS = 5_000
/** Bound of the wait for the locks that emptying a table takes: readers queue behind it. */
const LOCK_TIMEOUT_MS = 1_000

export interface FillOptions extends ChunkOptions {
  /** How long a projection with rows stays marked before it is emptied; 0 unless set, for a database without readers. */
  readonly markedMs?: number
  /** Places that the step leaves out, as `<shard> <projection>`. */
  readonly except?: readonly string[]
  /** Takes the error of rows that a projection cannot apply. Without it the step rejects. */
  readonly onPlaceFailed?: (place: StoppedPlace, error: Error) => void
}

/**
 * A row of `read.places` with work to do. Version below the code's: outdated, and readers wait until its tables can be
 * emptied. Otherwise `fill_to` set: being filled; null: complete.
 */
interface Unfinished {
  readonly projection: string
  readonly shard: string
  /** Its version is lower than the code's. */
  readonly is_outdated: boolean
  /** Its tables have rows. */
  readonly has_rows: boolean
  /** Incomplete and not behind: see `complete`. */
  readonly is_level: boolean
  /** Behind the shard's foremost projection; once it is complete, by more than a chunk: less than that the next chunk of the shard includes. */
  readonly is_behind: boolean
}

/** The projections of the code, as a table expression. */
export const declared = (projections: readonly Projection[]) => sql`
  unnest(${projections.map(({ name }) => name)}::text[], ${projections.map(({ version }) => version)}::integer[])
    as declared (projection, version)
`

async function unfinished(db: Db, { limit, projections = PROJECTIONS }: FillOptions): Promise<Unfinished[]> {
  const { rows } = await sql<Unfinished>`
    select projection, shard, is_outdated, seq > 0 as has_rows,
      not is_outdated and fill_to is not null and seq >= greatest(fill_to, front) as is_level,
      not is_outdated and seq < front - case when fill_to is null then ${limit}::bigint else 0 end as is_behind
    from (
      select p.*, p.version < declared.version as is_outdated,
        max(p.seq) filter (where p.version = declared.version) over (partition by p.shard) as front
      from read.places p join ${declared(projections)} on declared.projection = p.projection and p.version <= declared.version
    ) places
    where is_outdated or fill_to is not null or seq < front - ${limit}::bigint
  `.execute(db)
  return rows
}

/** Result of one step of filling. */
export interface FillStep {
  /** True if something remains to be filled. */
  readonly isFilling: boolean
  /** True if the step changed something. */
  readonly hasAdvanced: boolean
  /** Projections that it emptied, and those that it completed in some shard. */
  readonly emptied: readonly string[]
  readonly completed: readonly string[]
}

/** Does one bounded step: empties outdated projections, or completes those that are level and projects one chunk of one that is behind. */
export async function fillStep(db: Db, options: FillOptions): Promise<FillStep> {
  const { projections = PROJECTIONS, except = [] } = options
  const places = (await unfinished(db, options)).filter((place) => !except.includes(placeName(place)))
  const of = (which: readonly Unfinished[]) =>
    projections.filter(({ name }) => which.some(({ projection }) => projection === name))
  const outdated = places.filter(({ is_outdated }) => is_outdated)
  if (outdated.length > 0) {
    const emptied = await empty(db, of(outdated), outdated, options)
    return { isFilling: true, hasAdvanced: true, emptied, completed: [] }
  }
  const completed: string[] = []
  for (const each of of(places.filter(({ is_level }) => is_level))) {
    if (await complete(db, each)) completed.push(each.name)
  }
  const behind = places.filter(({ is_behind }) => is_behind)
  // At random, so that several processes share the work, and a projection that fails delays no other.
  const next = behind[Math.floor(Math.random() * behind.length)]
  const shards = behind.filter(({ projection }) => projection === next?.projection).map(({ shard }) => shard)
  const rows = next === undefined ? 0 : await projectNext(db, shards, of([next])[0] as Projection, options)
  const hasAdvanced = rows > 0 || completed.length > 0
  return { isFilling: places.length > 0, hasAdvanced, emptied: [], completed }
}

/**
 * Projects one chunk of the shards together. If a row fails, each half is projected alone, so that only that row's
 * shard fails. Returns the number of projected rows.
 */
async function projectNext(
  db: Db,
  shards: readonly string[],
  projection: Projection,
  options: FillOptions,
): Promise<number> {
  try {
    const progress = await projectAlone(db, shards, projection, options)
    return progress?.rows ?? 0
  } catch (error) {
    if (options.onPlaceFailed === undefined || !isOfRows(error)) throw error
    if (shards.length === 1) {
      options.onPlaceFailed({ shard: shards[0] as string, projection: projection.name }, error as Error)
      return 0
    }
    const middle = Math.ceil(shards.length / 2)
    const first = await projectNext(db, shards.slice(0, middle), projection, options)
    return first + (await projectNext(db, shards.slice(middle), projection, options))
  }
}

/** Marks the projections, so that readers wait, and empties them. Returns those that another process has not emptied meanwhile. */
async function empty(
  db: Db,
  projections: readonly Projection[],
  places: readonly Unfinished[],
  { markedMs = 0 }: FillOptions,
): Promise<string[]> {
  const emptied: string[] = []
  const names = projections.map(({ name }) => name)
  await db.transaction().execute((tx) => mark(tx, names))
  if (places.some(({ has_rows }) => has_rows)) await sleep(markedMs)
  for (const projection of projections) {
    await db.transaction().execute(async (tx) => {
      await sql`select set_config('lock_timeout', ${`${LOCK_TIMEOUT_MS}ms`}, true)`.execute(tx)
      // Waits for a running chunk. Another process may have emptied the tables meanwhile.
      const { rows } = await sql<{ version: number }>`
        select version from read.places where projection = ${projection.name} order by shard for update
      `.execute(tx)
      if (rows.every(({ version }) => version >= projection.version)) return
      await emptyTables(tx, projection.tables)
      await sql`
        update read.places p set version = ${projection.version}, seq = 0, fill_to = s.head
        from shards s where s.shard = p.shard and p.projection = ${projection.name}
      `.execute(tx)
      emptied.push(projection.name)
    })
  }
  return emptied
}

/** From now on readers treat the projections as incomplete. */
export const mark = (tx: Tx, projections: readonly string[]) =>
  sql`
    update read.places p set fill_to = s.head from shards s
    where s.shard = p.shard and p.projection = any(${projections}) and p.fill_to is null
  `.execute(tx)

export const emptyTables = (tx: Tx, tables: readonly string[]) =>
  sql`truncate ${sql.join(tables.map((table) => sql.table(table)))}`.execute(tx)

/**
 * Completes the projection in shards where it is level with the foremost projection and past the head at its start;
 * false if in none. `finish` runs with the last shard.
 */
async function complete(db: Db, { name, version, finish }: Projection): Promise<boolean> {
  const completed = await db.transaction().execute(async (tx) => {
    const { rows: locked } = await sql<{ version: number; fill_to: number | null }>`
      select version, fill_to from read.places where projection = ${name} order by shard for update
    `.execute(tx)
    if (locked.some((place) => place.version !== version)) return 0
    const { rows } = await sql`
      update read.places p set fill_to = null
      where projection = ${name} and seq >= fill_to
        and seq >= (select max(seq) from read.places q where q.shard = p.shard)
      returning shard
    `.execute(tx)
    const isLast = rows.length > 0 && rows.length === locked.filter(({ fill_to }) => fill_to !== null).length
    if (isLast) await finish?.(tx)
    // Chunks of a shard that was being filled are not in the feed.
    if (rows.length > 0) await startFeedEpoch(tx)
    return rows.length
  })
  if (completed > 0) await sql`select pg_notify('filled', ${name})`.execute(db)
  return completed > 0
}

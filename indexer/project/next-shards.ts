/**
 * First statement of a chunk: locks the places of its projections and reads the journal rows after them, up to each
 * shard's share of the chunk.
 */
import { sql } from 'kysely'
import type { Tx } from '../../db/client.ts'
import { isSpanWithin, type JournalEntry, type PlacedRow, readRows } from '../../db/journal.ts'
import type { PlacesTable } from '../../db/read-schema.ts'
import { invariant } from '../../domain/invariant.ts'
import { type JournalRow, marketShard } from '../../domain/journal/journal-row.ts'
import { unreadable } from '../../domain/journal/row-versions.ts'
import { afterFirstBatch, beforeLastBatch, MOST_BEYOND } from './batch-bounds.ts'
import { type GroupName, HeldGroups } from './held-groups.ts'
import type { ShardEntry } from './row-change.ts'

/** Places that a chunk may lock. */
export interface PlaceScope {
  readonly shards: readonly string[]
  /** Maximum rows of the chunk. */
  readonly limit: number
  /** Projections with their versions. */
  readonly known: readonly string[]
  /** See `SoleChunkOptions`. */
  readonly isSole?: boolean
  readonly except?: readonly string[]
  /** True for a chunk of one projection, which runs concurrently with other chunks of its shard. */
  readonly isAlone?: boolean
  /** Groups that the chunks before have read. */
  readonly held?: HeldGroups | undefined
}

/** A shard's part of a chunk. */
export interface ShardChunk {
  readonly shard: string
  /** The shard's market; 0 for `accounts`. */
  readonly marketId: number
  readonly epoch: number
  /** Sequence of the chunk's last row. */
  readonly seq: number
  readonly entries: readonly ShardEntry[]
  readonly projections: readonly string[]
  readonly placeOf: (projection: string) => PlacesTable | undefined
  /** True if the journal has further rows. */
  readonly hasMore: boolean
}

/** A locked place, with the head of its shard. */
type LockedPlace = PlacesTable & { readonly head: number }

/**
 * Advisory lock key pair of the only projector, held until its transaction ends. It is taken in the transaction that
 * writes, so a projector without the lock writes nothing.
 */
export const SOLE_LOCK = { first: 7_042, second: 1 } as const
/**
 * Longest pause of a projector between two statements of a chunk. Then the server ends its session and releases its
 * locks.
 */
const IDLE_TIMEOUT_MS = 5_000

/** Another projector's transaction holds `SOLE_LOCK`. */
export class OtherProjectorError extends Error {
  constructor() {
    super('another process projects')
  }
}

/** Null if other projectors hold the locks of all shards that have rows; empty if no shard has rows. */
export async function nextShards(tx: Tx, scope: PlaceScope): Promise<ShardChunk[] | null> {
  const { isOwner, pending, places, rows } = await lockAndRead(tx, scope)
  if (!isOwner) throw new OtherProjectorError()
  if (places.length === 0) return pending > 0 ? null : []
  const placesOf = Map.groupBy(places, ({ shard }) => shard)
  const rowsOf = Map.groupBy(rows, ({ shard }) => shard)
  const chunks: ShardChunk[] = []
  for (const [shard, own] of placesOf) {
    const found = rowsOf.get(shard) ?? []
    const { head } = own[0] as LockedPlace
    invariant(
      found.length > 0 || behindOf(own) >= head,
      `the journal of ${shard} lacks the rows behind row ${behindOf(own)}`,
    )
    if (found.length > 0) chunks.push(shardChunk(shard, own, await wholeBatches(tx, own, found, scope)))
  }
  return chunks.sort((a, b) => a.marketId - b.marketId)
}

interface LockedRows {
  readonly isOwner: boolean
  /** Number of shards with rows. */
  readonly pending: number
  readonly places: readonly LockedPlace[]
  /** In the order of each shard. */
  readonly rows: readonly PlacedRow[]
}

/** The rows of a shard that a chunk has: those behind `behind`, up to `until`. */
interface WantedRows {
  readonly shard: string
  readonly behind: number
  readonly until: number
}

interface First {
  readonly number: null
  readonly rows: Omit<LockedRows, 'rows'> & { readonly wanted: readonly WantedRows[] }
}

/** A group with wanted rows; `rows` is null if the projector holds it. */
type ReadGroup = GroupName & { readonly rows: readonly PlacedRow[] | null }

/**
 * Locks shards for one projector before their places, so that their projections stay together, and reads their rows. The limit
 * is divided evenly, so that no shard waits for another's burst.
 */
async function lockAndRead(tx: Tx, scope: PlaceScope): Promise<LockedRows> {
  const {
    shards,
    limit,
    known,
    isSole = false,
    except = [],
    isAlone = false,
    held = new HeldGroups(),
  } = scope
  const names = held.names()
  const isWanted = sql`p.shard = any(${shards}) and p.projection || ' ' || p.version = any(${known})
    and p.shard || ' ' || p.projection <> all(${except}::text[])`
  const { rows } = await sql<First | ReadGroup>`
    with pending as materialized (
      select p.shard, max(p.seq) as front from read.places p join shards s on s.shard = p.shard
      where ${isWanted} group by p.shard, s.head having min(p.seq) < s.head
    ), owned as materialized (
      select set_config('idle_in_transaction_session_timeout', ${`${IDLE_TIMEOUT_MS}ms`}, true) as timeout,
        not ${isSole}::boolean or pg_try_advisory_xact_lock(${SOLE_LOCK.first}::integer, ${SOLE_LOCK.second}::integer) as is_owner
    ), claimed as materialized (
      select shard, front, ${isAlone}::boolean or pg_try_advisory_xact_lock(hashtextextended('projection ' || shard, 0)) as is_free
      from pending where (select is_owner from owned)
    ), place as materialized (
      select p.*, s.head from claimed join read.places p on p.shard = claimed.shard join shards s on s.shard = p.shard
      where claimed.is_free and ${isWanted} and p.seq >= claimed.front - ${limit}::bigint
      for update of p skip locked
    ), first as (
      select shard, min(seq) as behind, max(seq) as front, max(head) - min(seq) as size from place group by shard having max(head) > min(seq)
    ), share as (
      select floor((array_agg(rest order by size, shard) filter (where size > rest))[1])::bigint as most from (
        select shard, size, (${limit}::bigint - sum(size) over smaller + size) / (count(*) over () - row_number() over smaller + 1) as rest
        from first window smaller as (order by size, shard)
      ) shares
    ), wanted as materialized (
      select shard, behind, behind + greatest(1, coalesce(share.most, size), front - behind) as until from first cross join share
    ), source as materialized (
      select distinct number from wanted cross join lateral (
        select first_group, last_group from journal_spans s
        where ${isSpanWithin(sql`wanted.shard`, sql`wanted.behind`, sql`wanted.until`)}
      ) span cross join lateral generate_series(span.first_group, span.last_group) number
    )
    select null::bigint as number, null::text as digest,
      json_build_object('isOwner', (select is_owner from owned), 'pending', (select count(*) from pending), 'places', coalesce((select json_agg(place) from place), '[]'),
        'wanted', coalesce((select json_agg(wanted) from wanted), '[]')) as rows
    union all
    select g.number, g.digest, case when held.number is null then g.rows end
    from source join engine_groups g using (number)
    left join unnest(${names.map(({ number }) => number)}::bigint[], ${names.map(({ digest }) => digest)}::text[]) as held (number, digest)
      on held.number = g.number and held.digest = g.digest
    order by number nulls first
  `.execute(tx)
  const [first, ...groups] = rows as [First, ...ReadGroup[]]
  const { wanted, ...locked } = first.rows
  return { ...locked, rows: wantedRows(groups, wanted, held) }
}

function wantedRows(
  groups: readonly ReadGroup[],
  wanted: readonly WantedRows[],
  held: HeldGroups,
): readonly PlacedRow[] {
  const wantedOf = new Map(wanted.map((one) => [one.shard, one]))
  // A group is held once all are found: it may take the place of one that this chunk needs.
  const wantedGroups = groups.map(({ rows: read, ...name }) => {
    const rows = read ?? held.rowsOf(name)
    invariant(rows !== undefined, `the group ${name.number} is read or held`)
    return { ...name, rows }
  })
  for (const group of wantedGroups) held.hold(group)
  return wantedGroups.flatMap(({ rows }) =>
    rows.filter(({ shard, seq }) => {
      const one = wantedOf.get(shard)
      return one !== undefined && seq > one.behind && seq <= one.until
    }),
  )
}

/**
 * Rows of a shard that exceeds its share, without the batch at their end; with the whole batch if they contain nothing
 * else.
 */
async function wholeBatches(
  tx: Tx,
  places: readonly LockedPlace[],
  found: readonly JournalEntry[],
  { limit }: PlaceScope,
): Promise<readonly JournalEntry[]> {
  const { shard, head } = places[0] as LockedPlace
  const after = behindOf(places)
  if (after + found.length >= head) return found
  const count = beforeLastBatch(found.map(({ row }) => row))
  // The foremost projection ended a chunk within these rows, so they are not one batch.
  if (after + count < frontOf(places)) return found
  if (count > 0) return found.slice(0, count)
  const more = await readRows(tx, shard, after, limit + MOST_BEYOND)
  return more.slice(0, Math.max(found.length, afterFirstBatch(more.map(({ row }) => row))))
}

const behindOf = (places: readonly LockedPlace[]): number => Math.min(...places.map(({ seq }) => seq))
const frontOf = (places: readonly LockedPlace[]): number => Math.max(...places.map(({ seq }) => seq))

function shardChunk(
  shard: string,
  places: readonly LockedPlace[],
  journal: readonly JournalEntry[],
): ShardChunk {
  const [behind, front] = [behindOf(places), frontOf(places)]
  const { seq } = journal.at(-1) as JournalEntry
  invariant(
    seq === behind + journal.length,
    `the journal of ${shard} lacks ${seq - behind - journal.length} rows between row ${behind} and row ${seq}`,
  )
  invariant(seq >= front, `a chunk of ${shard} ends at row ${seq}, before the place ${front} of a projection`)
  for (const { row, seq: at } of journal) requireReadable(shard, at, row)
  const marketId = marketOf(shard)
  const placeOf = new Map(places.map((each) => [each.projection, each]))
  const [{ epoch, head }] = places as [LockedPlace]
  return {
    shard,
    marketId,
    epoch,
    seq,
    entries: journal.map((entry: { seq: number; row: JournalRow }) => ({ shard, marketId, ...entry })),
    projections: places.map(({ projection }) => projection),
    placeOf: (projection) => placeOf.get(projection),
    hasMore: seq < head,
  }
}

/** A later version of the engine may write rows that this version would misread: the read model stays behind until a later indexer runs. */
function requireReadable(shard: string, seq: number, row: JournalRow): void {
  const problem = unreadable(row)
  if (problem !== null)
    throw new Error(`row ${seq} of ${shard} cannot be read: ${problem}; start a later version of the indexer`)
}

/** The market of a shard `m<id>`; 0 for `accounts`. */
function marketOf(shard: string): number {
  const marketId = Number(shard.slice(1))
  return shard === marketShard(marketId) ? marketId : 0
}

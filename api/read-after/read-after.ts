/**
 * Makes reads show an earlier write. A bookmark names a shard and a sequence; a read with a bookmark waits until the
 * read model reaches it, and a read without one never waits.
 */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { decodeNotice, PROJECTED_CHANNEL } from '../../db/projected-notices.ts'
import { ACCOUNTS_SHARD } from '../../domain/journal/journal-row.ts'
import type { Clock } from '../../service/clock.ts'
import type { Caller } from '../auth/caller.ts'
import type { TableProgress } from '../commands/table-progress.ts'
import { isConnectionError, isTimeout } from '../database-errors.ts'
import { ApiError } from '../errors.ts'
import { networkOf } from '../http/network.ts'
import type { Notifications } from '../ports.ts'
import { createBookmarkNotices } from './bookmark-notices.ts'
import { type Completeness, isFilling, projectionsOf, type ReadScope } from './completeness.ts'

export interface Bookmark {
  readonly shard: string
  readonly epoch: number
  readonly seq: number
}

export interface BookmarkFields {
  readonly read_after_shard_id?: string
  readonly read_after_shard_seq?: string
}

/** The caller of a read and its bookmark. */
export interface Reading {
  readonly query: BookmarkFields
  readonly caller: Pick<Caller, 'userId'> | null
  readonly ip: string
}

export interface ReadAfter {
  /** `query` may read the tables of the scope, and the write side. */
  read<Value>(reading: Reading, scope: ReadScope, query: (db: Db | Tx) => Promise<Value>): Promise<Value>
  readonly waiting: number
  stop(): void
}

export interface ReadAfterPorts {
  readonly db: Db
  readonly clock: Clock
  readonly notifications: Notifications
  readonly completeness: Completeness
  readonly tables: TableProgress
  /** A bookmark was stale: the read model may have been rebuilt. */
  readonly onStale: () => void
}

export interface ReadAfterLimits {
  readonly readAfterWaitMs: number
  readonly readAfterWaiters: number
  readonly readAfterPollMs: number
}

/** Notified with the name of a projection that has been filled. */
export const FILLED_CHANNEL = 'filled'

const stale = (field: string, received: string) =>
  new ApiError('HTV1_READ_AFTER_STALE_BOOKMARK', {
    field,
    expected: '`read_after` of a recent write',
    received,
  })
const incomplete = (field: string) =>
  new ApiError('INCOMPLETE_BOOKMARK', {
    field,
    expected: 'both parts of `read_after` of a write, or neither',
  })
const unavailable = () => new ApiError('HTV1_READ_AFTER_UNAVAILABLE', {}, '2')
const pending = (shard: string) => new ApiError('HTV1_READ_AFTER_PENDING', { shard }, '0.5')

/** Null without a bookmark; throws INCOMPLETE_BOOKMARK for one field without the other. */
export function parseBookmark(fields: BookmarkFields): Bookmark | null {
  const { read_after_shard_id: id, read_after_shard_seq: seq } = fields
  if (id === undefined && seq === undefined) return null
  if (id === undefined) throw incomplete('read_after_shard_id')
  if (seq === undefined) throw incomplete('read_after_shard_seq')
  const match = /^(accounts|m\d{1,10})\.(\d{1,9})$/.exec(id)
  if (match === null) throw stale('read_after_shard_id', id)
  if (!/^\d{1,15}$/.test(seq)) throw stale('read_after_shard_seq', seq)
  return { shard: match[1] as string, epoch: Number(match[2]), seq: Number(seq) }
}

/** A place that one projection must reach. */
interface Missing extends Bookmark {
  readonly projection: string
  /** True if the projection must first be filled. */
  readonly is_filling: boolean
}

/**
 * `missing`: the place that the read model must reach. `beyond`: the journal lacks the write, because the database copy
 * lags or the bookmark is invalid.
 */
type Progress = { readonly kind: 'shown' } | { readonly kind: 'behind' | 'beyond'; readonly missing: Missing }

/**
 * Share of waiting places for one caller, and for all bookmarks beyond the journal. A busy caller or many invalid
 * bookmarks therefore cannot exclude other reads.
 */
const SHARE = 0.25

interface Waiter {
  readonly missing: Missing
  /** The account, or the address of an unauthenticated caller. */
  readonly callerKey: string
  readonly isBeyond: boolean
  readonly wake: (error?: ApiError) => void
}

/** Where a projection is in a shard. */
type Place = Bookmark & Pick<Missing, 'projection'>

const hasReached = (at: Place, { projection, shard, epoch, seq, is_filling }: Missing): boolean =>
  at.projection === projection && at.shard === shard && !is_filling && (at.epoch !== epoch || at.seq >= seq)

/** Compares the bookmark with the read model inside `tx`, from whose snapshot the data is read as well. */
async function progressOf(tx: Tx, { shard, epoch, seq }: Bookmark, scope: ReadScope): Promise<Progress> {
  const projections = projectionsOf(scope)
  const { rows } = await sql<{
    epoch: number
    head: number
    projection: string
    is_at: boolean
    is_filling: boolean
  }>`
    select s.epoch, s.head, needed.projection, coalesce(p.epoch = ${epoch} and p.seq >= ${seq}::bigint, false) as is_at,
      ${isFilling('needed.projection', scope.shard)} as is_filling
    from shards s cross join unnest(${projections}::text[]) needed (projection)
    left join read.places p on p.shard = s.shard and p.projection = needed.projection
    where s.shard = ${shard}
  `.execute(tx)
  const [first] = rows
  if (first === undefined || first.epoch !== epoch) throw stale('read_after_shard_id', `${shard}.${epoch}`)
  const behind = rows.find(({ is_at, is_filling }) => !is_at || is_filling)
  if (behind !== undefined) {
    const { projection, is_filling } = behind
    return {
      kind: behind.head < seq ? 'beyond' : 'behind',
      missing: { shard, epoch, seq, projection, is_filling },
    }
  }
  const missing = shard === ACCOUNTS_SHARD ? await missingMarket(tx, seq, projections) : null
  return missing === null ? { kind: 'shown' } : { kind: 'behind', missing }
}

/**
 * First shard that has not reached its sequence in a multi-shard command's `accounts` row. Rows do not wait for these
 * shards: a failing market delays only reads that name it.
 */
async function missingMarket(tx: Tx, seq: number, projections: readonly string[]): Promise<Missing | null> {
  const { rows } = await sql<Missing>`
    select s.shard, s.epoch, named.value::bigint as seq, needed.projection, false as is_filling
    from spanned_commands c
    cross join lateral json_each_text(c.shards) named
    join shards s on s.shard = named.key
    cross join unnest(${projections}::text[]) needed (projection)
    left join read.places p on p.shard = s.shard and p.epoch = s.epoch and p.projection = needed.projection
    where c.seq = ${seq} and coalesce(p.seq, -1) < named.value::bigint
    order by s.shard limit 1
  `.execute(tx)
  return rows[0] ?? null
}

/** Holds waiting reads and wakes them by NOTIFY, and by one shared poll in case a notification is lost. */
function createReadQueue({ db, notifications }: ReadAfterPorts, limits: ReadAfterLimits) {
  const waiters = new Set<Waiter>()
  const placesOf = new Map<string, number>()
  const seen = new Map<string, Place>()
  const notices = createBookmarkNotices(db)
  let poll: NodeJS.Timeout | undefined

  const keyOf = ({ shard, projection }: Pick<Place, 'shard' | 'projection'>): string =>
    `${shard} ${projection}`
  const advance = (to: Place): void => {
    seen.set(keyOf(to), to)
    for (const waiter of waiters) if (hasReached(to, waiter.missing)) waiter.wake()
  }
  const fill = (isFilled: (projection: string) => boolean): void => {
    for (const waiter of waiters) {
      if (waiter.missing.is_filling && isFilled(waiter.missing.projection)) waiter.wake()
    }
  }
  const failAll = (): void => {
    for (const waiter of waiters) waiter.wake(unavailable())
  }
  notifications.on(PROJECTED_CHANNEL, (payload) => {
    const { projections, shards } = decodeNotice(payload)
    for (const shard of shards) for (const projection of projections) advance({ ...shard, projection })
  })
  notifications.on(FILLED_CHANNEL, (name) => fill((projection) => projection === name))

  const isFull = ({ callerKey, isBeyond }: Pick<Waiter, 'callerKey' | 'isBeyond'>): boolean => {
    const places = limits.readAfterWaiters
    if (waiters.size >= places) return true
    const share = Math.ceil(places * SHARE)
    if ((placesOf.get(callerKey) ?? 0) >= share) return true
    return isBeyond && [...waiters].filter((waiter) => waiter.isBeyond).length >= share
  }
  const enter = (waiter: Waiter): void => {
    waiters.add(waiter)
    placesOf.set(waiter.callerKey, (placesOf.get(waiter.callerKey) ?? 0) + 1)
  }
  const leave = (waiter: Waiter): void => {
    if (!waiters.delete(waiter)) return
    const left = (placesOf.get(waiter.callerKey) ?? 0) - 1
    left > 0 ? placesOf.set(waiter.callerKey, left) : placesOf.delete(waiter.callerKey)
  }

  const pollProgress = async (): Promise<void> => {
    try {
      const places = await db.selectFrom('read.places').selectAll().execute()
      for (const place of places) advance(place)
      const filling = new Set(
        places.filter(({ fill_to }) => fill_to !== null).map(({ projection }) => projection),
      )
      fill((projection) => !filling.has(projection))
    } catch {
      if (!notifications.isListening()) failAll()
    }
    poll = waiters.size > 0 ? setTimeout(() => void pollProgress(), limits.readAfterPollMs) : undefined
  }

  return {
    waiters,
    /** Resolves when the read model may have reached the bookmark, or after `ms`. */
    wait(read: Omit<Waiter, 'wake'>, ms: number): Promise<void> {
      const { missing } = read
      if (isFull(read)) throw new ApiError('HTV1_READ_AFTER_CAPACITY', {}, '1')
      // The notification may have arrived between the database read and now.
      const last = seen.get(keyOf(missing))
      if (last?.epoch === missing.epoch && hasReached(last, missing)) return Promise.resolve()
      return new Promise((resolve, reject) => {
        const wake = (error?: ApiError): void => {
          clearTimeout(timer)
          leave(waiter)
          error ? reject(error) : resolve()
        }
        const timer = setTimeout(wake, ms)
        const waiter = { ...read, wake }
        enter(waiter)
        // Rows that the journal does not have, or tables that are being filled, do not come sooner by it.
        if (!read.isBeyond && !missing.is_filling) notices.notify(missing.shard)
        poll ??= setTimeout(() => void pollProgress(), limits.readAfterPollMs)
      })
    },
    stop() {
      clearTimeout(poll)
      for (const waiter of waiters) waiter.wake(new ApiError('SHUTTING_DOWN', {}, '1'))
    },
  }
}

export function createReadAfter(ports: ReadAfterPorts, limits: ReadAfterLimits): ReadAfter {
  const { db, clock, completeness } = ports
  const queue = createReadQueue(ports, limits)

  type Attempt<Value> = { readonly value: Value } | Exclude<Progress, { kind: 'shown' }>
  const attempt = <Value>(
    bookmark: Bookmark,
    scope: ReadScope,
    query: (tx: Tx) => Promise<Value>,
  ): Promise<Attempt<Value>> =>
    db
      .transaction()
      .setIsolationLevel('repeatable read')
      .setAccessMode('read only')
      .execute(async (tx): Promise<Attempt<Value>> => {
        const progress = await progressOf(tx, bookmark, scope)
        return progress.kind === 'shown' ? { value: await query(tx) } : progress
      })
      .catch((error: unknown) => {
        if (error instanceof ApiError && error.code === 'HTV1_READ_AFTER_STALE_BOOKMARK') ports.onStale()
        throw isConnectionError(error) || isTimeout(error) ? unavailable() : error
      })

  return {
    async read({ query: fields, caller, ip }, scope, query) {
      const bookmark = parseBookmark(fields)
      if (bookmark === null) {
        await completeness.expect(scope)
        return query(db)
      }
      const callerKey = caller === null ? networkOf(ip) : `user ${caller.userId}`
      const deadline = clock.now() + limits.readAfterWaitMs
      let seen = await attempt(bookmark, scope, query)
      // The journal follows the engine's answers.
      if (!('value' in seen) && seen.kind === 'beyond' && (await ports.tables.caughtUp().catch(() => false)))
        seen = await attempt(bookmark, scope, query)
      for (;;) {
        if ('value' in seen) return seen.value
        const left = deadline - clock.now()
        if (left <= 0) throw pending(seen.missing.shard)
        await queue.wait({ callerKey, missing: seen.missing, isBeyond: seen.kind === 'beyond' }, left)
        seen = await attempt(bookmark, scope, query)
      }
    },
    get waiting() {
      return queue.waiters.size
    },
    stop: queue.stop,
  }
}

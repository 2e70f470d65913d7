/** Order events in the read model. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { OrderEventKind } from '../../domain/orders/order-state.ts'
import type { Cursor } from '../wire/cursor.ts'
import { isWithin, type Page } from '../wire/list-query.ts'
import type { TimeRange } from '../wire/times.ts'
import type { EventPlace, OrderEventRow } from './view.ts'

/** Tables that the queries of events read. */
export const EVENT_TABLES = ['read.order_changes', 'read.orders'] as const

const selectEvents = (db: Db | Tx) =>
  db
    .selectFrom('read.order_events as e')
    .innerJoin('read.orders as o', 'o.order_id', 'e.order_id')
    .selectAll('e')
    .select(['o.hash', 'o.client_order_id', 'o.market_id'])

/** Events of one order, newest first; they all belong to one shard. */
export function eventsOfOrder(
  db: Db | Tx,
  orderId: string,
  { cursor, limit, ...range }: Page & TimeRange,
): Promise<OrderEventRow[]> {
  const query = selectEvents(db)
    .where('e.order_id', '=', orderId)
    .where(isWithin(sql.ref('e.at'), range))
  const after = cursor === null ? query : query.where(isBefore(cursor))
  return after
    .orderBy('e.seq', 'desc')
    .orderBy('e.place', 'desc')
    .limit(limit + 1)
    .execute()
}

const isBefore = ({ at: seq, id: place }: Cursor) =>
  sql<boolean>`(e.seq, e.place) < (${seq}::bigint, ${Number(place)}::bigint)`

export interface EventFilter {
  readonly marketId?: number | undefined
  readonly kind?: OrderEventKind | undefined
  readonly limit: number
  readonly after: EventPlace | null
}

/** Last arrival first; one row more than `limit` if there is a next page. */
export function eventsOfUser(db: Db | Tx, userId: number, filter: EventFilter): Promise<OrderEventRow[]> {
  let query = selectEvents(db).where('e.user_id', '=', userId)
  if (filter.marketId !== undefined) query = query.where('e.shard', '=', marketShard(filter.marketId))
  if (filter.kind !== undefined) query = query.where('e.kind', '=', filter.kind)
  if (filter.after !== null) query = query.where(arrivedBefore(filter.after))
  return query
    .orderBy('e.arrival', 'desc')
    .limit(filter.limit + 1)
    .execute()
}

/** By time, latest first, and by arrival among events of one time. `after` has the time of the last event before the page. */
export interface TimedEventFilter extends Omit<EventFilter, 'after'>, TimeRange {
  readonly after: (EventPlace & { readonly at: number }) | null
}

/**
 * As `eventsOfUser`, by time: a range of times is no range of arrivals. Each half reads at most one page by its own index, so that a range
 * long ago costs no more than the newest one.
 */
export async function eventsOfUserByTime(
  db: Db | Tx,
  userId: number,
  { marketId, kind, limit, after, ...range }: TimedEventFilter,
): Promise<OrderEventRow[]> {
  const half = (at: 'at' | 'accepted_at') => {
    const place = sql.ref(at)
    const isAfter =
      after === null ? sql`true` : sql`(${place}, arrival) < (${after.at}::bigint, ${currentArrival(after)})`
    return sql`user_id = ${userId} and ${isWithin(place, range)} and ${isAfter}`
  }
  const page = (at: 'at' | 'accepted_at') =>
    sql`order by ${sql.ref(at)} desc, arrival desc limit ${limit + 1}::bigint`
  const inShard = marketId === undefined ? sql`true` : sql`shard = ${marketShard(marketId)}`
  const inMarket = marketId === undefined ? sql`true` : sql`market_id = ${marketId}::bigint`
  const { rows } = await sql<OrderEventRow>`
    select e.*, o.hash, o.client_order_id, o.market_id
    from (
      (
        select shard, seq, place, order_id, user_id, kind, details, at, arrival from read.order_changes
        where ${half('at')} and ${inShard} and ${kind === undefined ? sql`true` : sql`kind = ${kind}`} ${page('at')}
      ) union all (
        -- As in the view.
        select 'm' || market_id, split_part(order_id, '-', 2)::bigint, 0, order_id, user_id, 'CREATED',
          jsonb_build_object('status', case when type in ('MARKET', 'LIMIT') then 'OPEN' else 'PENDING_TRIGGER' end),
          accepted_at, arrival
        from read.orders
        where ${half('accepted_at')} and ${inMarket} and ${kind === undefined || kind === 'CREATED'} ${page('accepted_at')}
      )
    ) e
    join read.orders o using (order_id)
    order by e.at desc, e.arrival desc limit ${limit + 1}::bigint
  `.execute(db)
  return rows
}

/** A rebuild renumbers arrivals, so the current arrival of the cursor's event is used; if a rollback removed the event, the cursor's own. */
function currentArrival({ arrival, shard, seq, place }: EventPlace) {
  const changed = sql`select arrival from read.order_changes where shard = ${shard} and seq = ${seq} and place = ${place}`
  const created = sql`select arrival from read.orders where order_id = ${`${shard.slice(1)}-${seq}`} and ${place} = 0`
  return sql`coalesce((${changed}), (${created}), ${arrival}::bigint)`
}

const arrivedBefore = (place: EventPlace) => sql<boolean>`e.arrival < ${currentArrival(place)}`

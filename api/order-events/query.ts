/** Order events in the read model. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { OrderEventKind } from '../../domain/orders/order-state.ts'
import type { Cursor } from '../wire/cursor.ts'
import type { Page } from '../wire/list-query.ts'
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
  { cursor, limit }: Page,
): Promise<OrderEventRow[]> {
  const query = selectEvents(db).where('e.order_id', '=', orderId)
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

/** A rebuild renumbers arrivals, so the current arrival of the cursor's event is used; if a rollback removed the event, the cursor's own. */
function arrivedBefore({ arrival, shard, seq, place }: EventPlace) {
  const changed = sql`select arrival from read.order_changes where shard = ${shard} and seq = ${seq} and place = ${place}`
  const created = sql`select arrival from read.orders where order_id = ${`${shard.slice(1)}-${seq}`} and ${place} = 0`
  return sql<boolean>`e.arrival < coalesce((${changed}), (${created}), ${arrival}::bigint)`
}

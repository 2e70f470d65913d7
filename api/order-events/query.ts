/** What happened to orders, in the read model. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { OrderEventKind } from '../../domain/orders/order-state.ts'
import type { Cursor } from '../wire/cursor.ts'
import type { Page } from '../wire/list-query.ts'
import type { EventPlace, OrderEventRow } from './view.ts'

const selectEvents = (db: Db | Tx) =>
  db
    .selectFrom('read.order_events as e')
    .innerJoin('read.orders as o', 'o.order_id', 'e.order_id')
    .selectAll('e')
    .select(['o.hash', 'o.market_id'])

/** Of one order, which is of one shard: the last first. */
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

/** The last to arrive first; one row more than `limit` if there is a next page. */
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

/** A rebuild numbers events anew and a rollback takes some away: the event is looked up, and its number of then serves where it is gone. */
function arrivedBefore({ arrival, shard, seq, place }: EventPlace) {
  const changed = sql`select arrival from read.order_changes where shard = ${shard} and seq = ${seq} and place = ${place}`
  const created = sql`select arrival from read.orders where order_id = ${`${shard.slice(1)}-${seq}`} and ${place} = 0`
  return sql<boolean>`e.arrival < coalesce((${changed}), (${created}), ${arrival}::bigint)`
}

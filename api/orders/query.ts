/** Orders in the read model. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import type { OrderStatus, Side } from '../../domain/orders/order.ts'
import { anyNumber, type Page } from '../wire/list-query.ts'
import type { OrderRow } from './view.ts'

export const orderById = (db: Db | Tx, orderId: string): Promise<OrderRow | undefined> =>
  db.selectFrom('read.orders').selectAll().where('order_id', '=', orderId).executeTakeFirst()

/** The hash is looked up on the write side, so the order is found as soon as it is projected. */
export const orderByHash = (db: Db | Tx, hash: string): Promise<OrderRow | undefined> =>
  db
    .selectFrom('read.orders')
    .selectAll()
    .where('order_id', '=', (known) => known.selectFrom('orders').select('order_id').where('hash', '=', hash))
    .executeTakeFirst()

export interface OrderFilter extends Page {
  readonly marketId?: number | undefined
  readonly status?: OrderStatus | undefined
  readonly side?: Side | undefined
}

/** Newest first; one row more than `limit` if there is a next page. */
export async function ordersOfUser(db: Db | Tx, userId: number, filter: OrderFilter): Promise<OrderRow[]> {
  let query = db.selectFrom('read.orders').selectAll().where('user_id', '=', userId)
  if (filter.marketId !== undefined) query = query.where('market_id', '=', anyNumber(filter.marketId))
  if (filter.status !== undefined) query = query.where('status', '=', filter.status)
  if (filter.side !== undefined) query = query.where('side', '=', filter.side)
  if (filter.cursor !== null) {
    const { at, id } = filter.cursor
    query = query.where(sql<boolean>`(accepted_at, order_id) < (${at}::bigint, ${id})`)
  }
  return query
    .orderBy('accepted_at', 'desc')
    .orderBy('order_id', 'desc')
    .limit(filter.limit + 1)
    .execute()
}

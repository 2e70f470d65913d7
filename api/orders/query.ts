/** Orders in the read model. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { constant } from '../../db/values.ts'
import type { OrderStatus, Side } from '../../domain/orders/order.ts'
import type { Price } from '../../domain/units.ts'
import { anyNumber, isWithin, type Page } from '../wire/list-query.ts'
import type { TimeRange } from '../wire/times.ts'
import type { OrderRow } from './view.ts'

/** Tables that the queries of orders read. */
export const ORDER_TABLES = ['read.orders'] as const

/** An order with the latest oracle price of its market, from which its effective price is computed. */
export interface PricedOrderRow extends OrderRow {
  readonly oracle_price: Price | null
}

const selectOrders = (db: Db | Tx) =>
  db
    .selectFrom('read.orders as o')
    .leftJoin('oracle_reports as r', (join) =>
      join.onRef('r.market_id', '=', 'o.market_id').on('r.feed', '=', constant('index')),
    )
    .selectAll('o')
    .select(sql<Price | null>`r.price`.as('oracle_price'))

export const orderById = (db: Db | Tx, orderId: string): Promise<PricedOrderRow | undefined> =>
  selectOrders(db).where('order_id', '=', orderId).executeTakeFirst()

/** The hash is looked up on the write side, so the order is found as soon as it is projected. */
export const orderByHash = (db: Db | Tx, hash: string): Promise<PricedOrderRow | undefined> =>
  selectOrders(db)
    .where('order_id', '=', (known) => known.selectFrom('orders').select('order_id').where('hash', '=', hash))
    .executeTakeFirst()

/** The live order with the label, otherwise the last accepted order with it. Read from the write side, as by hash. */
export const orderByClientId = (
  db: Db | Tx,
  userId: number,
  clientOrderId: string,
): Promise<PricedOrderRow | undefined> =>
  selectOrders(db)
    .where('order_id', '=', sql<string>`(${labelledOrder('order_id', userId, clientOrderId)})`)
    .executeTakeFirst()

/** A label is free again once its order has ended. Only a fork can revive an order whose label a later order has. */
const LATEST_LABELLED = 20

/**
 * A column of the account's order with the label: of a live order if there is one, otherwise of the last accepted
 * order.
 */
export const labelledOrder = (column: 'order_id' | 'hash', userId: number, clientOrderId: string) =>
  sql<string | null>`
    select ${sql.ref(column)} from (
      select * from orders where user_id = ${userId} and client_order_id = ${clientOrderId}
      order by accepted_at desc limit ${LATEST_LABELLED}
    ) latest
    order by ended_at is not null, accepted_at desc limit 1
  `

/** The range is of the time of acceptance. */
export interface OrderFilter extends Page, TimeRange {
  readonly marketId?: number | undefined
  readonly status?: OrderStatus | undefined
  readonly side?: Side | undefined
}

/** Newest first; one row more than `limit` if there is a next page. */
export async function ordersOfUser(
  db: Db | Tx,
  userId: number,
  filter: OrderFilter,
): Promise<PricedOrderRow[]> {
  let query = selectOrders(db)
    .where('user_id', '=', userId)
    .where(isWithin(sql.ref('o.accepted_at'), filter))
  if (filter.marketId !== undefined) query = query.where('o.market_id', '=', anyNumber(filter.marketId))
  if (filter.status !== undefined) query = query.where('o.status', '=', filter.status)
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

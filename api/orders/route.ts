/** Reads of the caller's orders. */
import type { FastifyRequest } from 'fastify'
import type { Db, Tx } from '../../db/client.ts'
import { callerOf } from '../http/access.ts'
import type { App } from '../http/types.ts'
import { specOf } from '../markets/market-directory.ts'
import type { Reading } from '../read-after/read-after.ts'
import { decodeCursor, pageOf } from '../wire/cursor.ts'
import { BookmarkQuery, UserIdParams } from '../wire/schema.ts'
import { timeRange } from '../wire/times.ts'
import { ownOrder, type ReadPorts, type RequestedOrder } from './own-orders.ts'
import {
  ORDER_TABLES,
  orderByClientId,
  orderByHash,
  orderById,
  ordersOfUser,
  type PricedOrderRow,
} from './query.ts'
import { ClientOrderIdParams, Order, OrderHashParams, OrderIdParams, Orders, OrdersQuery } from './schema.ts'
import { orderView } from './view.ts'

const tags = ['orders']
const own = { access: 'user' } as const

export function orderRoutes(app: App, ports: ReadPorts): void {
  oneOrder(app, ports)
  orderList(app, ports)
}

function oneOrder(app: App, { markets, readAfter }: ReadPorts): void {
  const readOne = async (
    request: FastifyRequest & Reading,
    requested: RequestedOrder,
    find: (db: Db | Tx) => Promise<PricedOrderRow | undefined>,
  ): Promise<Order> => {
    const row = ownOrder(
      await readAfter.read(request, { tables: ORDER_TABLES }, find),
      callerOf(request).userId,
      requested,
    )
    return orderView(await markets.byId(row.market_id), row, row.oracle_price)
  }
  app.get(
    '/v0/orders/:order_id',
    {
      config: { ...own, errors: ['NOT_YOURS', 'ORDER_NOT_FOUND'] },
      schema: {
        tags,
        summary: 'Get one order',
        operationId: 'getOrder',
        params: OrderIdParams,
        querystring: BookmarkQuery,
        response: { 200: Order },
      },
    },
    (request) => {
      const id = request.params.order_id
      const requested = { field: 'order_id', received: id } as const
      return readOne(request, requested, (db) => orderById(db, id))
    },
  )
  app.get(
    '/v0/orders/by-hash/:order_hash',
    {
      config: { ...own, errors: ['NOT_YOURS', 'ORDER_NOT_FOUND'] },
      schema: {
        tags,
        summary: 'Get one order by its hash',
        operationId: 'getOrderByHash',
        params: OrderHashParams,
        querystring: BookmarkQuery,
        response: { 200: Order },
      },
    },
    (request) => {
      const hash = request.params.order_hash.toLowerCase()
      const requested = { field: 'order_hash', received: hash } as const
      return readOne(request, requested, (db) => orderByHash(db, hash))
    },
  )
  app.get(
    '/v0/orders/by-client-id/:client_order_id',
    {
      config: { ...own, errors: ['ORDER_NOT_FOUND'] },
      schema: {
        tags,
        summary: 'Get one order by its client_order_id',
        description: 'The live order with this label, else the one with it that was accepted last.',
        operationId: 'getOrderByClientId',
        params: ClientOrderIdParams,
        querystring: BookmarkQuery,
        response: { 200: Order },
      },
    },
    (request) => {
      const received = request.params.client_order_id
      const { userId } = callerOf(request)
      const requested = { field: 'client_order_id', received } as const
      return readOne(request, requested, (db) => orderByClientId(db, userId, received))
    },
  )
}

function orderList(app: App, { markets, readAfter }: ReadPorts): void {
  app.get(
    '/v0/orders/by-user/:user_id',
    {
      config: own,
      schema: {
        tags,
        summary: "List the caller's orders, newest first",
        operationId: 'listOrders',
        params: UserIdParams,
        querystring: OrdersQuery,
        response: { 200: Orders },
      },
    },
    async (request) => {
      const { market_id: marketId, status, side, limit = 100, cursor, ...times } = request.query
      const place = { limit, cursor: decodeCursor('orders', cursor) }
      const filter = { marketId, status, side, ...place, ...timeRange(times) }
      const rows = await readAfter.read(request, { tables: ORDER_TABLES }, (db) =>
        ordersOfUser(db, request.params.user_id, filter),
      )
      const specs = await markets.ofRows(rows)
      const { page, next_cursor } = pageOf('orders', rows, limit, (row) => ({
        at: row.accepted_at,
        id: row.order_id,
      }))
      return { orders: page.map((row) => orderView(specOf(specs, row), row, row.oracle_price)), next_cursor }
    },
  )
}

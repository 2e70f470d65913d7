/** Reading orders and what happened to them: the caller's own only. */
import type { FastifyRequest } from 'fastify'
import type { Db, Tx } from '../../db/client.ts'
import { callerOf } from '../http/access.ts'
import { type App, answers } from '../http/types.ts'
import { specOf } from '../markets/market-directory.ts'
import { eventsOfOrder, eventsOfUser } from '../order-events/query.ts'
import { OrderEvents, OrderEventsQuery, UserEventsQuery } from '../order-events/schema.ts'
import {
  type EventPlace,
  eventId,
  eventView,
  type OrderEventRow,
  parseEventId,
} from '../order-events/view.ts'
import type { Reading } from '../read-after/read-after.ts'
import { type Cursor, decodeCursor, invalidCursor, pageOf } from '../wire/cursor.ts'
import { type Asked, ownOrder, type ReadPorts } from './own-orders.ts'
import { orderByHash, orderById, ordersOfUser } from './query.ts'
import {
  BookmarkQuery,
  Order,
  OrderHashParams,
  OrderIdParams,
  Orders,
  OrdersQuery,
  UserIdParams,
} from './schema.ts'
import { type OrderRow, orderView } from './view.ts'

const tags = ['orders']
const own = { access: 'user' } as const

export function orderReadRoutes(app: App, ports: ReadPorts): void {
  oneOrder(app, ports)
  orderList(app, ports)
  orderEvents(app, ports)
  userEvents(app, ports)
}

function oneOrder(app: App, { markets, readAfter }: ReadPorts): void {
  const readOne = async (
    request: FastifyRequest & Reading,
    asked: Asked,
    find: (db: Db | Tx) => Promise<OrderRow | undefined>,
  ): Promise<Order> => {
    const row = ownOrder(await readAfter.read(request, find), callerOf(request).userId, asked)
    return orderView(await markets.byId(row.market_id), row)
  }
  app.get(
    '/v0/orders/:order_id',
    {
      config: own,
      schema: {
        tags,
        summary: 'One order',
        operationId: 'getOrder',
        params: OrderIdParams,
        querystring: BookmarkQuery,
        response: answers(Order),
      },
    },
    (request) => {
      const id = request.params.order_id
      const asked = { field: 'order_id', received: id } as const
      return readOne(request, asked, (db) => orderById(db, id))
    },
  )
  app.get(
    '/v0/orders/by-hash/:order_hash',
    {
      config: own,
      schema: {
        tags,
        summary: 'One order by its hash',
        operationId: 'getOrderByHash',
        params: OrderHashParams,
        querystring: BookmarkQuery,
        response: answers(Order),
      },
    },
    (request) => {
      const hash = request.params.order_hash.toLowerCase()
      const asked = { field: 'order_hash', received: hash } as const
      return readOne(request, asked, (db) => orderByHash(db, hash))
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
        summary: "The caller's orders, newest first",
        operationId: 'listOrders',
        params: UserIdParams,
        querystring: OrdersQuery,
        response: answers(Orders),
      },
    },
    async (request) => {
      const { market_id: marketId, status, side, limit = 100, cursor } = request.query
      const filter = { marketId, status, side, limit, cursor: decodeCursor('orders', cursor) }
      const rows = await readAfter.read(request, (db) => ordersOfUser(db, request.params.user_id, filter))
      const specs = await markets.ofRows(rows)
      const { page, next_cursor } = pageOf('orders', rows, limit, (row) => ({
        at: row.accepted_at,
        id: row.order_id,
      }))
      return { orders: page.map((row) => orderView(specOf(specs, row), row)), next_cursor }
    },
  )
}

function orderEvents(app: App, { markets, readAfter }: ReadPorts): void {
  app.get(
    '/v0/orders/:order_id/events',
    {
      config: own,
      schema: {
        tags,
        summary: 'What happened to one order, newest first',
        operationId: 'listOrderEvents',
        params: OrderIdParams,
        querystring: OrderEventsQuery,
        response: answers(OrderEvents),
      },
    },
    async (request) => {
      const { limit = 100, cursor } = request.query
      const page = { limit, cursor: placeInOrder(cursor) }
      const id = request.params.order_id
      const { order, rows } = await readAfter.read(request, async (db) => ({
        order: ownOrder(await orderById(db, id), callerOf(request).userId, {
          field: 'order_id',
          received: id,
        }),
        rows: await eventsOfOrder(db, id, page),
      }))
      const spec = await markets.byId(order.market_id)
      const { page: events, next_cursor } = pageOf('order-events', rows, limit, ({ seq, place }) => ({
        at: seq,
        id: String(place),
      }))
      return { events: events.map((row) => eventView(spec, row)), next_cursor }
    },
  )
}

/** An order's events are in the order of one log: `at` is the sequence there, `id` the place in its row. */
function placeInOrder(text: string | undefined): Cursor | null {
  const cursor = decodeCursor('order-events', text)
  if (cursor !== null && !/^\d{1,9}$/.test(cursor.id)) throw invalidCursor(text as string)
  return cursor
}

function userEvents(app: App, { markets, readAfter }: ReadPorts): void {
  app.get(
    '/v0/users/:user_id/order-events',
    {
      config: own,
      schema: {
        tags,
        summary: "What happened to the caller's orders, newest first",
        operationId: 'listUserOrderEvents',
        params: UserIdParams,
        querystring: UserEventsQuery,
        response: answers(OrderEvents),
      },
    },
    async (request) => {
      const { market_id: marketId, kind, limit = 100, cursor } = request.query
      const filter = { marketId, kind, limit, after: placeOfUser(cursor) }
      const rows = await readAfter.read(request, (db) => eventsOfUser(db, request.params.user_id, filter))
      const specs = await markets.ofRows(rows)
      const { page, next_cursor } = pageOf('user-events', rows, limit, cursorOfUser)
      return { events: page.map((row) => eventView(specOf(specs, row), row)), next_cursor }
    },
  )
}

const cursorOfUser = (row: OrderEventRow): Cursor => ({ at: row.arrival, id: eventId(row) })

function placeOfUser(text: string | undefined): EventPlace | null {
  const cursor = decodeCursor('user-events', text)
  if (cursor === null) return null
  const place = parseEventId(cursor.id)
  if (place === null) throw invalidCursor(text as string)
  return { arrival: cursor.at, ...place }
}

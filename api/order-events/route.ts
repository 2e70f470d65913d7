/** Reads of order events: of one order, and of all orders of the caller. */
import { callerOf } from '../http/access.ts'
import type { App } from '../http/types.ts'
import { specOf } from '../markets/market-directory.ts'
import { ownOrder, type ReadPorts } from '../orders/own-orders.ts'
import { orderById } from '../orders/query.ts'
import { OrderIdParams } from '../orders/schema.ts'
import { type Cursor, decodeCursor, invalidCursor, pageOf } from '../wire/cursor.ts'
import { UserIdParams } from '../wire/schema.ts'
import { EVENT_TABLES, eventsOfOrder, eventsOfUser } from './query.ts'
import { OrderEvents, OrderEventsQuery, UserEventsQuery } from './schema.ts'
import { type EventPlace, eventId, eventView, type OrderEventRow, parseEventId } from './view.ts'

const own = { access: 'user' } as const
const tags = ['orders']

export function orderEventRoutes(app: App, ports: ReadPorts): void {
  orderEvents(app, ports)
  userEvents(app, ports)
}

function orderEvents(app: App, { markets, readAfter }: ReadPorts): void {
  app.get(
    '/v0/orders/:order_id/events',
    {
      config: { ...own, errors: ['NOT_YOURS', 'ORDER_NOT_FOUND'] },
      schema: {
        tags,
        summary: 'List the events of one order, newest first',
        operationId: 'listOrderEvents',
        params: OrderIdParams,
        querystring: OrderEventsQuery,
        response: { 200: OrderEvents },
      },
    },
    async (request) => {
      const { limit = 100, cursor } = request.query
      const page = { limit, cursor: placeInOrder(cursor) }
      const id = request.params.order_id
      const { order, rows } = await readAfter.read(request, { tables: EVENT_TABLES }, async (db) => ({
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

/** Events of one order are ordered by one journal: `at` is the sequence, `id` the place within the journal row. */
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
        summary: "List the events of the caller's orders, newest first",
        operationId: 'listUserOrderEvents',
        params: UserIdParams,
        querystring: UserEventsQuery,
        response: { 200: OrderEvents },
      },
    },
    async (request) => {
      const { market_id: marketId, kind, limit = 100, cursor } = request.query
      const filter = { marketId, kind, limit, after: placeOfUser(cursor) }
      const rows = await readAfter.read(request, { tables: EVENT_TABLES }, (db) =>
        eventsOfUser(db, request.params.user_id, filter),
      )
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

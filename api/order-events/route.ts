/** Reads of order events: of one order, and of all orders of the caller. */
import type { Db, Tx } from '../../db/client.ts'
import { callerOf } from '../http/access.ts'
import type { App } from '../http/types.ts'
import { specOf } from '../markets/market-directory.ts'
import { ownOrder, type ReadPorts } from '../orders/own-orders.ts'
import { orderById } from '../orders/query.ts'
import { OrderIdParams } from '../orders/schema.ts'
import { type Cursor, decodeCursor, invalidCursor, type List, pageOf } from '../wire/cursor.ts'
import { UserIdParams } from '../wire/schema.ts'
import { type TimeRange, timeRange } from '../wire/times.ts'
import { EVENT_TABLES, type EventFilter, eventsOfOrder, eventsOfUser, eventsOfUserByTime } from './query.ts'
import { OrderEvents, OrderEventsQuery, UserEventsQuery } from './schema.ts'
import { eventId, eventView, type OrderEventRow, parseEventId } from './view.ts'

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
      const { limit = 100, cursor, ...times } = request.query
      const page = { limit, cursor: placeInOrder(cursor), ...timeRange(times) }
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
        description:
          'In the order in which they became visible, so that a reader that continues at a cursor misses none. With `from` or `to` in the order ' +
          'of their times. A cursor belongs to the order of its list.',
        operationId: 'listUserOrderEvents',
        params: UserIdParams,
        querystring: UserEventsQuery,
        response: { 200: OrderEvents },
      },
    },
    async (request) => {
      const { market_id: marketId, kind, limit = 100, cursor, ...times } = request.query
      const filter = { marketId, kind, limit }
      const { list, cursorOf, find } = isTimed(times)
        ? byTime(filter, timeRange(times), cursor)
        : byArrival(filter, cursor)
      const rows = await readAfter.read(request, { tables: EVENT_TABLES }, (db) =>
        find(db, request.params.user_id),
      )
      const specs = await markets.ofRows(rows)
      const { page, next_cursor } = pageOf(list, rows, limit, cursorOf)
      return { events: page.map((row) => eventView(specOf(specs, row), row)), next_cursor }
    },
  )
}

type Filter = Omit<EventFilter, 'after'>

/** A list of a user's events in one order: its cursors, and its page. */
interface EventList {
  readonly list: List
  readonly cursorOf: (row: OrderEventRow) => Cursor
  readonly find: (db: Db | Tx, userId: number) => Promise<OrderEventRow[]>
}

const isTimed = ({ from, to }: { from?: string; to?: string }): boolean =>
  from !== undefined || to !== undefined

function byArrival(filter: Filter, text: string | undefined): EventList {
  const cursor = decodeCursor('user-events', text)
  const after = cursor && { arrival: cursor.at, ...placeOf(cursor.id, text) }
  return {
    list: 'user-events',
    cursorOf: (row) => ({ at: row.arrival, id: eventId(row) }),
    find: (db, userId) => eventsOfUser(db, userId, { ...filter, after }),
  }
}

/** The cursor's id is the event's id and its arrival. */
function byTime(filter: Filter, range: TimeRange, text: string | undefined): EventList {
  const cursor = decodeCursor('user-events-by-time', text)
  const [, id = '', arrival = ''] = /^(.+)-(\d{1,15})$/.exec(cursor?.id ?? '') ?? []
  const after = cursor && { at: cursor.at, arrival: Number(arrival), ...placeOf(id, text) }
  return {
    list: 'user-events-by-time',
    cursorOf: (row) => ({ at: row.at, id: `${eventId(row)}-${row.arrival}` }),
    find: (db, userId) => eventsOfUserByTime(db, userId, { ...filter, ...range, after }),
  }
}

function placeOf(id: string, text: string | undefined) {
  const place = parseEventId(id)
  if (place === null) throw invalidCursor(text as string)
  return place
}

/** Placing, cancelling and reading orders and fills: the caller's own only. */
import type { MarketSpec } from '../../domain/market.ts'
import type { Db, Tx } from '../../indexer/db/client.ts'
import { ApiError } from '../errors.ts'
import { callerOf } from '../http/access.ts'
import { type App, answers } from '../http/types.ts'
import type { Intake } from '../intake/intake.ts'
import type { MarketDirectory } from '../market-directory.ts'
import { fillsOfOrder, fillsOfUser, orderByHash, orderById, ordersOfUser } from '../queries/orders.ts'
import type { BookmarkFields, ReadAfter } from '../read-after.ts'
import {
  BookmarkQuery,
  CancelAnswer,
  CancelBody,
  Fills,
  FillsQuery,
  Order,
  OrderFillsQuery,
  OrderHashParams,
  OrderIdParams,
  Orders,
  OrdersQuery,
  PlaceOrderAnswer,
  PlaceOrderBody,
  UserIdParams,
} from '../schemas/order.ts'
import { decodeCursor, pageOf } from '../views/cursor.ts'
import { type FillRow, fillView, type OrderRow, orderView } from '../views/order.ts'

export interface OrderPorts {
  readonly intake: Intake
  readonly markets: MarketDirectory
  readonly readAfter: ReadAfter
}

const tags = ['orders']
const own = { access: 'user' } as const

export function orderRoutes(app: App, ports: OrderPorts): void {
  placing(app, ports)
  readingOrders(app, ports)
  readingFills(app, ports)
}

function placing(app: App, { intake }: OrderPorts): void {
  app.post(
    '/v0/orders',
    {
      config: { access: 'user', bucket: 'orders' },
      schema: {
        tags,
        summary: 'Place a signed order',
        description: 'Accepted into the book, not traded yet. Posting the same signed order again is safe.',
        operationId: 'placeOrder',
        body: PlaceOrderBody,
        response: answers(PlaceOrderAnswer),
      },
    },
    (request) => intake.place(callerOf(request), request.body),
  )
  app.post(
    '/v0/orders/cancel/by-hash/:order_hash',
    {
      config: { access: 'user', bucket: 'cancels' },
      schema: {
        tags,
        summary: 'Cancel an order',
        description:
          'Repeating a cancel is safe. While a batch holds some of the order it waits for that batch.',
        operationId: 'cancelOrder',
        params: OrderHashParams,
        body: CancelBody,
        response: answers(CancelAnswer),
      },
    },
    (request) => {
      const reason = storable('reason', request.body.reason ?? null)
      return intake.cancel(callerOf(request), request.params.order_hash.toLowerCase(), reason)
    },
  )
}

/** Postgres keeps neither NUL nor half a surrogate pair. */
function storable(field: string, text: string | null): string | null {
  if (text === null || (text.isWellFormed() && !text.includes('\0'))) return text
  throw new ApiError('INVALID_FIELD', {
    field,
    expected: 'a text without NUL and without half surrogate pairs',
    received: text,
  })
}

/** The order, if it is the caller's own. */
function ownOrder(
  order: OrderRow | undefined,
  userId: number,
  asked: { readonly field: string; readonly received: string },
): OrderRow {
  if (order === undefined) throw new ApiError('ORDER_NOT_FOUND', { ...asked })
  if (order.user_id !== userId)
    throw new ApiError('NOT_YOURS', { ...asked, expected: 'an order of your own' })
  return order
}

const specsOf = async (markets: MarketDirectory, rows: readonly { readonly market_id: number }[]) => {
  const ids = [...new Set(rows.map(({ market_id }) => market_id))]
  return new Map<number, MarketSpec>(
    await Promise.all(ids.map(async (id) => [id, await markets.byId(id)] as const)),
  )
}
const specOf = (specs: Map<number, MarketSpec>, marketId: number): MarketSpec =>
  specs.get(marketId) as MarketSpec

function readingOrders(app: App, { markets, readAfter }: OrderPorts): void {
  const readOne = async (
    query: BookmarkFields,
    userId: number,
    asked: { readonly field: string; readonly received: string },
    find: (db: Db | Tx) => Promise<OrderRow | undefined>,
  ): Promise<Order> => {
    const row = ownOrder(await readAfter.read(query, find), userId, asked)
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
      const asked = { field: 'order_id', received: id }
      return readOne(request.query, callerOf(request).userId, asked, (db) => orderById(db, id))
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
      const asked = { field: 'order_hash', received: hash }
      return readOne(request.query, callerOf(request).userId, asked, (db) => orderByHash(db, hash))
    },
  )
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
      const filter = { marketId, status, side, limit, cursor: decodeCursor(cursor) }
      const rows = await readAfter.read(request.query, (db) =>
        ordersOfUser(db, request.params.user_id, filter),
      )
      const specs = await specsOf(markets, rows)
      const { page, next_cursor } = pageOf(rows, limit, (row) => ({ at: row.accepted_at, id: row.order_id }))
      return { orders: page.map((row) => orderView(specOf(specs, row.market_id), row)), next_cursor }
    },
  )
}

function readingFills(app: App, { markets, readAfter }: OrderPorts): void {
  const answer = async (rows: readonly FillRow[], limit: number) => {
    const specs = await specsOf(markets, rows)
    const { page, next_cursor } = pageOf(rows, limit, (row) => ({ at: row.matched_at, id: row.fill_id }))
    return { fills: page.map((row) => fillView(specOf(specs, row.market_id), row)), next_cursor }
  }
  app.get(
    '/v0/orders/:order_id/fills',
    {
      config: own,
      schema: {
        tags,
        summary: 'Fills of one order, newest first',
        operationId: 'listOrderFills',
        params: OrderIdParams,
        querystring: OrderFillsQuery,
        response: answers(Fills),
      },
    },
    async (request) => {
      const { limit = 100, cursor } = request.query
      const page = { limit, cursor: decodeCursor(cursor) }
      const id = request.params.order_id
      const rows = await readAfter.read(request.query, async (db) => {
        ownOrder(await orderById(db, id), callerOf(request).userId, { field: 'order_id', received: id })
        return fillsOfOrder(db, id, page)
      })
      return answer(rows, limit)
    },
  )
  app.get(
    '/v0/fills/by-user/:user_id',
    {
      config: own,
      schema: {
        tags,
        summary: "The caller's fills, newest first",
        operationId: 'listFills',
        params: UserIdParams,
        querystring: FillsQuery,
        response: answers(Fills),
      },
    },
    async (request) => {
      const { market_id: marketId, side, limit = 100, cursor } = request.query
      const filter = { marketId, side, limit, cursor: decodeCursor(cursor) }
      const rows = await readAfter.read(request.query, (db) =>
        fillsOfUser(db, request.params.user_id, filter),
      )
      return answer(rows, limit)
    },
  )
}

/** Reads of fills: the caller's own, their settlement stages, and the public fills of a market. */
import { marketShard } from '../../domain/journal/journal-row.ts'
import { callerOf } from '../http/access.ts'
import { markImmutable } from '../http/caching.ts'
import { answerCsv, type CsvPage, MAX_CSV_ROWS } from '../http/csv-exports.ts'
import type { App } from '../http/types.ts'
import { specOf } from '../markets/market-directory.ts'
import { MarketIdParams } from '../markets/schema.ts'
import { ownOrder, type ReadPorts } from '../orders/own-orders.ts'
import { ORDER_TABLES, orderById } from '../orders/query.ts'
import { OrderIdParams } from '../orders/schema.ts'
import { prefersCsv } from '../wire/csv.ts'
import { type Cursor, decodeCursor, invalidCursor, pageOf } from '../wire/cursor.ts'
import { UserIdParams } from '../wire/schema.ts'
import { timeRange } from '../wire/times.ts'
import { CSV_HEADER, csvOf } from './csv.ts'
import {
  FILL_TABLES,
  fillStages,
  fillsOfMarket,
  fillsOfOrder,
  fillsOfUser,
  type PublicPlace,
  TIMED_FILL_TABLES,
} from './query.ts'
import {
  FILL_STATUSES,
  FillProcessing,
  FillProcessingQuery,
  Fills,
  FillsQuery,
  OrderFillsQuery,
  PublicFills,
  PublicFillsQuery,
} from './schema.ts'
import { type FillRow, fillProcessingView, fillView, publicFillView } from './view.ts'

const tags = ['fills']
const own = { access: 'user' } as const
/** Fills of one order are read with the order, which decides who may read them. */
const OF_ORDER = { tables: [...ORDER_TABLES, ...FILL_TABLES] } as const

export function fillRoutes(app: App, ports: ReadPorts): void {
  ofOrder(app, ports)
  ofUser(app, ports)
  ofMarket(app, ports)
  processing(app, ports)
}

const cursorOf = (row: FillRow): Cursor => ({ at: row.matched_at, id: row.fill_id })

async function answer({ markets }: ReadPorts, rows: readonly FillRow[], limit: number) {
  const specs = await markets.ofRows(rows)
  const { page, next_cursor } = pageOf('fills', rows, limit, cursorOf)
  return { fills: page.map((row) => fillView(specOf(specs, row), row)), next_cursor }
}

function ofOrder(app: App, ports: ReadPorts): void {
  app.get(
    '/v0/orders/:order_id/fills',
    {
      config: { ...own, errors: ['NOT_YOURS', 'ORDER_NOT_FOUND'] },
      schema: {
        tags,
        summary: 'List the fills of one order, newest first',
        operationId: 'listOrderFills',
        params: OrderIdParams,
        querystring: OrderFillsQuery,
        response: { 200: Fills },
      },
    },
    async (request) => {
      const { limit = 100, cursor, ...times } = request.query
      const page = { limit, cursor: decodeCursor('fills', cursor), ...timeRange(times) }
      const id = request.params.order_id
      const rows = await ports.readAfter.read(request, OF_ORDER, async (db) => {
        ownOrder(await orderById(db, id), callerOf(request).userId, { field: 'order_id', received: id })
        return fillsOfOrder(db, id, page)
      })
      return answer(ports, rows, limit)
    },
  )
}

const OWN_FILLS = `
With \`Accept: text/csv\` the answer is a CSV file (RFC 4180) with a header line of the same field names, all fills up to
${MAX_CSV_ROWS} or \`limit\`, and amounts as exact decimals. An account can read one such file at a time. Continue a file of ${MAX_CSV_ROWS} rows with
\`to\` one millisecond after the \`created_at\` of its last row, and skip the rows that you have by \`fill_id\`.
`.trim()

function ofUser(app: App, ports: ReadPorts): void {
  app.get(
    '/v0/fills/by-user/:user_id',
    {
      config: { ...own, errors: ['EXPORT_RUNNING'], sends: ['Content-Disposition', 'Vary'] },
      schema: {
        tags,
        summary: "List the caller's fills, newest first",
        description: OWN_FILLS,
        operationId: 'listFills',
        params: UserIdParams,
        querystring: FillsQuery,
        response: { 200: Fills },
      },
    },
    async (request, reply) => {
      const { market_id: marketId, side, limit, cursor, ...times } = request.query
      const after = decodeCursor('fills', cursor)
      const { user_id: userId } = request.params
      const range = timeRange(times)
      const read = (page: CsvPage) =>
        ports.readAfter.read(request, { tables: FILL_TABLES }, (db) =>
          fillsOfUser(db, userId, { marketId, side, ...range, limit: page.limit, cursor: page.after }),
        )
      reply.header('vary', 'Accept')
      if (!prefersCsv(request.headers.accept))
        return answer(ports, await read({ limit: limit ?? 100, after }), limit ?? 100)
      return answerCsv(reply, {
        userId,
        fileName: 'fills.csv',
        header: CSV_HEADER,
        page: { limit: limit ?? MAX_CSV_ROWS, after },
        async read(page) {
          const rows = (await read(page)).slice(0, page.limit)
          const specs = await ports.markets.ofRows(rows)
          return rows.map((row) => ({ row, spec: specOf(specs, row) }))
        },
        placeOf: ({ row }) => cursorOf(row),
        line: ({ row, spec }) => csvOf(spec, row),
      }) as never
    },
  )
}

function ofMarket(app: App, { markets, readAfter }: ReadPorts): void {
  app.get(
    '/v0/fills/by-market/:market_id',
    {
      config: { cached: true },
      schema: {
        tags,
        summary: 'List the fills of a market, newest first',
        description:
          'Both sides of every trade, one fill per order and part, without the identity of the owners.',
        operationId: 'listMarketFills',
        params: MarketIdParams,
        querystring: PublicFillsQuery,
        response: { 200: PublicFills },
      },
    },
    async (request, reply) => {
      const { side, limit = 100, cursor, ...query } = request.query
      const spec = await markets.byId(request.params.market_id)
      const times = timeRange(query)
      const filter = { side, limit, after: publicPlace(cursor), ...times }
      const isTimed = times.from !== null || times.to !== null
      const scope = { tables: isTimed ? TIMED_FILL_TABLES : FILL_TABLES, shard: marketShard(spec.marketId) }
      const rows = await readAfter.read(request, scope, (db) => fillsOfMarket(db, spec.marketId, filter))
      const { page, next_cursor } = pageOf('market-fills', rows, limit, publicCursor)
      if (filter.after !== null && page.every(isFinal)) markImmutable(reply)
      return { fills: page.map((row) => publicFillView(spec, row)), next_cursor }
    },
  )
}

/** Nothing but a fork deeper than the configured confirmations changes it. */
const isFinal = ({ status }: FillRow): boolean => status === 'CONFIRMED' || status === 'FAILED'

const publicCursor = ({ batch_id, part, place }: FillRow): Cursor => ({
  at: batch_id,
  id: `${part}-${place}`,
})

function publicPlace(text: string | undefined): PublicPlace | null {
  const cursor = decodeCursor('market-fills', text)
  if (cursor === null) return null
  const match = /^(\d{1,9})-(\d{1,9})$/.exec(cursor.id)
  if (match === null) throw invalidCursor(text as string)
  return { batch: cursor.at, part: Number(match[1]), place: Number(match[2]) }
}

function processing(app: App, { markets, readAfter }: ReadPorts): void {
  app.get(
    '/v0/orders/:order_id/fill-processing-status',
    {
      config: { ...own, errors: ['NOT_YOURS', 'ORDER_NOT_FOUND'] },
      schema: {
        tags,
        summary: 'Get the settlement stages of the fills of an order',
        operationId: 'getFillProcessingStatus',
        params: OrderIdParams,
        querystring: FillProcessingQuery,
        response: { 200: FillProcessing },
      },
    },
    async (request) => {
      const { limit = 100, cursor } = request.query
      const page = { limit, cursor: decodeCursor('fills', cursor) }
      const id = request.params.order_id
      const { order, stages, rows } = await readAfter.read(request, OF_ORDER, async (db) => ({
        order: ownOrder(await orderById(db, id), callerOf(request).userId, {
          field: 'order_id',
          received: id,
        }),
        rows: await fillsOfOrder(db, id, page),
        stages: await fillStages(db, id),
      }))
      const spec = await markets.byId(order.market_id)
      const { page: fills, next_cursor } = pageOf('fills', rows, limit, cursorOf)
      const counts = Object.fromEntries(FILL_STATUSES.map((stage) => [stage, stages.get(stage) ?? 0]))
      return fillProcessingView(spec, order, counts as Record<(typeof FILL_STATUSES)[number], number>, {
        fills,
        next_cursor,
      })
    },
  )
}

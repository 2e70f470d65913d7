/** Reads of the caller's transactions, as JSON or CSV. */
import type { MarketSpec } from '../../domain/market/market.ts'
import { ApiError } from '../errors.ts'
import { callerOf } from '../http/access.ts'
import { answerCsv, MAX_CSV_ROWS } from '../http/csv-exports.ts'
import type { App } from '../http/types.ts'
import type { Specs } from '../markets/market-directory.ts'
import type { ReadPorts } from '../orders/own-orders.ts'
import { parseTime } from '../wire/amounts.ts'
import { prefersCsv } from '../wire/csv.ts'
import type { Cursor } from '../wire/cursor.ts'
import { timeRange } from '../wire/times.ts'
import { CSV_HEADER, csvOf } from './csv.ts'
import { TRANSACTION_TABLES, type TransactionFilter, transactionsOfUser } from './query.ts'
import { Transactions, TransactionsQuery } from './schema.ts'
import { type TransactionRow, transactionView } from './view.ts'

interface Listed {
  readonly row: TransactionRow
  readonly symbol: string | null
}

type Page = Pick<TransactionFilter, 'limit' | 'after'>

const DESCRIPTION = `
Deposits, withdrawals at their request, adjustments, funding payments, liquidations and payouts of ended markets.
With \`Accept: text/csv\` the answer is a CSV file (RFC 4180) with a header line of the same field names, all transactions up to
${MAX_CSV_ROWS} or \`limit\`, and amounts as exact decimals. An account can read one such file at a time.
`.trim()

export function transactionRoutes(app: App, { markets, readAfter }: ReadPorts): void {
  app.get(
    '/v0/account/transactions',
    {
      config: {
        access: 'user',
        errors: ['INVALID_CURSOR', 'EXPORT_RUNNING'],
        sends: ['Content-Disposition', 'Vary'],
      },
      schema: {
        tags: ['account'],
        summary: "List the caller's transactions, newest first",
        description: DESCRIPTION,
        operationId: 'listTransactions',
        querystring: TransactionsQuery,
        response: { 200: Transactions },
      },
    },
    async (request, reply) => {
      const { userId } = callerOf(request)
      const { limit, ...query } = request.query
      const range = {
        ...{ marketId: query.market_id, type: query.transaction_type },
        ...timeRange(query),
      }
      const after = cursorOf(query.cursor_created_at, query.cursor_id)
      const read = async (page: Page): Promise<readonly Listed[]> => {
        const rows = await readAfter.read(request, { tables: TRANSACTION_TABLES }, (db) =>
          transactionsOfUser(db, userId, { ...range, ...page }),
        )
        const specs = await markets.byIds(rows.flatMap(({ market_id }) => market_id ?? []))
        return rows.map((row) => ({ row, symbol: symbolOf(specs, row) }))
      }
      reply.header('vary', 'Accept')
      if (prefersCsv(request.headers.accept))
        return answerCsv(reply, {
          userId,
          fileName: 'transactions.csv',
          header: CSV_HEADER,
          page: { limit: limit ?? MAX_CSV_ROWS, after },
          read,
          placeOf: ({ row: { at, id } }) => ({ at, id }),
          line: ({ row, symbol }) => csvOf(row, symbol),
        }) as never
      const transactions = await read({ limit: limit ?? 100, after })
      return { transactions: transactions.map(({ row, symbol }) => transactionView(row, symbol)) }
    },
  )
}

const symbolOf = (specs: Specs, { market_id }: TransactionRow): string | null =>
  market_id === null ? null : (specs.get(market_id) as MarketSpec).symbol

/** The pair identifies a place in the list, also if its transaction has left the chain. */
function cursorOf(createdAt: string | undefined, id: string | undefined): Cursor | null {
  if (createdAt === undefined && id === undefined) return null
  const at = createdAt === undefined ? null : parseTime(createdAt)
  if (id !== undefined && at !== null) return { at, id }
  const field = id === undefined ? 'cursor_id' : 'cursor_created_at'
  const expected = '`created_at` and `id` of the last transaction of the page before, both'
  throw new ApiError('INVALID_CURSOR', {
    field,
    expected,
    received: id === undefined ? null : (createdAt ?? null),
  })
}

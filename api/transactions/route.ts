/** Reads of the caller's transactions. */
import type { MarketSpec } from '../../domain/market/market.ts'
import { ApiError } from '../errors.ts'
import { callerOf } from '../http/access.ts'
import type { App } from '../http/types.ts'
import type { ReadPorts } from '../orders/own-orders.ts'
import { parseTime } from '../wire/amounts.ts'
import type { Cursor } from '../wire/cursor.ts'
import { TRANSACTION_TABLES, transactionsOfUser } from './query.ts'
import { Transactions, TransactionsQuery } from './schema.ts'
import { transactionView } from './view.ts'

export function transactionRoutes(app: App, { markets, readAfter }: ReadPorts): void {
  app.get(
    '/v0/account/transactions',
    {
      config: { access: 'user' },
      schema: {
        tags: ['account'],
        summary: "List the caller's transactions, newest first",
        description:
          'Deposits, withdrawals at their request, funding payments, liquidations and payouts of ended markets.',
        operationId: 'listTransactions',
        querystring: TransactionsQuery,
        response: { 200: Transactions },
      },
    },
    async (request) => {
      const { transaction_type: type, market_id: marketId, limit = 100 } = request.query
      const after = cursorOf(request.query.cursor_created_at, request.query.cursor_id)
      const rows = await readAfter.read(request, { tables: TRANSACTION_TABLES }, (db) =>
        transactionsOfUser(db, callerOf(request).userId, { type, marketId, limit, after }),
      )
      const specs = await markets.byIds(rows.flatMap(({ market_id }) => market_id ?? []))
      const symbolOf = (id: number | null) => (id === null ? null : (specs.get(id) as MarketSpec).symbol)
      return { transactions: rows.map((row) => transactionView(row, symbolOf(row.market_id))) }
    },
  )
}

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

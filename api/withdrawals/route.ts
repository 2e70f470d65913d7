/** Reads of the caller's withdrawals. */

import type { AccountPorts } from '../accounts/route.ts'
import { callerOf } from '../http/access.ts'
import type { App } from '../http/types.ts'
import { amount, maybeTime } from '../wire/amounts.ts'
import { decodeCursor, invalidCursor, pageOf } from '../wire/cursor.ts'
import { timeRange } from '../wire/times.ts'
import { WITHDRAWAL_TABLES, withdrawalsOfUser } from './query.ts'
import { Withdrawals, WithdrawalsQuery } from './schema.ts'
import { pendingPayableAt, withdrawalView } from './view.ts'

const LIST = 'withdrawals'

function afterOf(text: string | undefined) {
  const cursor = decodeCursor(LIST, text)
  if (cursor !== null && !/^\d{1,9}$/.test(cursor.id)) throw invalidCursor(text as string)
  return cursor
}

export function withdrawalRoutes(app: App, { readAfter, clock }: AccountPorts): void {
  app.get(
    '/v0/account/withdrawals',
    {
      config: { access: 'user' },
      schema: {
        tags: ['account'],
        summary: "List the caller's withdrawals with their status, newest first",
        description:
          'One per request on the chain. The bank pays all requests together, once 16 seconds have passed since the last of them.',
        operationId: 'listWithdrawals',
        querystring: WithdrawalsQuery,
        response: { 200: Withdrawals },
      },
    },
    async (request) => {
      const { limit = 100, cursor, ...times } = request.query
      const filter = { limit, ...timeRange(times), after: afterOf(cursor) }
      const found = await readAfter.read(request, { tables: WITHDRAWAL_TABLES }, (db) =>
        withdrawalsOfUser(db, callerOf(request).userId, filter),
      )
      const payableAt = pendingPayableAt(found)
      const now = clock.now()
      const { page, next_cursor } = pageOf(LIST, found.rows, limit, ({ block, log_index }) => ({
        ...{ at: block, id: String(log_index) },
      }))
      return {
        ...amount('pending', found.pending),
        payable_at: maybeTime(payableAt),
        withdrawals: page.map((row) => withdrawalView(row, payableAt, now)),
        next_cursor,
      }
    },
  )
}

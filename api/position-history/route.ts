/** The caller's positions from their opening on. */
import { callerOf } from '../http/access.ts'
import type { App } from '../http/types.ts'
import { specOf } from '../markets/market-directory.ts'
import type { ReadPorts } from '../orders/own-orders.ts'
import { decodeCursor, invalidCursor, pageOf } from '../wire/cursor.ts'
import { timeRange } from '../wire/times.ts'
import { CLOSED_TABLES, type ClosedPlace, closedPositions, OPENED_TABLES, openedPositions } from './query.ts'
import { PositionHistory, PositionHistoryQuery } from './schema.ts'
import { recordedPositionView } from './view.ts'

const LIST = 'position-history'

/** The cursor's id is market and number. */
function afterOf(text: string | undefined): ClosedPlace | null {
  const cursor = decodeCursor(LIST, text)
  if (cursor === null) return null
  const match = /^(\d{1,10})-(\d{1,15})$/.exec(cursor.id)
  if (match === null) throw invalidCursor(text as string)
  return { closedAt: cursor.at, marketId: Number(match[1]), number: Number(match[2]) }
}

export function positionHistoryRoutes(app: App, { markets, readAfter }: ReadPorts): void {
  app.get(
    '/v0/account/position-history',
    {
      config: { access: 'user' },
      schema: {
        tags: ['account'],
        summary: "List the caller's positions with what they realized since they were opened",
        description:
          'A position begins when its size leaves 0 and ends when it is 0 again; an order that turns it ends it and begins the next one. What ' +
          'the exchange has matched counts once it is mined.',
        operationId: 'listPositionHistory',
        querystring: PositionHistoryQuery,
        response: { 200: PositionHistory },
      },
    },
    async (request) => {
      const { market_id: marketId, limit = 100, cursor, status = 'closed', ...times } = request.query
      if (status === 'open') {
        const rows = await readAfter.read(request, { tables: OPENED_TABLES }, (db) =>
          openedPositions(db, callerOf(request).userId, marketId),
        )
        const specs = await markets.ofRows(rows)
        return {
          positions: rows.map((row) => recordedPositionView(specOf(specs, row), row)),
          next_cursor: null,
        }
      }
      const filter = { marketId, limit, after: afterOf(cursor), ...timeRange(times) }
      const rows = await readAfter.read(request, { tables: CLOSED_TABLES }, (db) =>
        closedPositions(db, callerOf(request).userId, filter),
      )
      const specs = await markets.ofRows(rows)
      const { page, next_cursor } = pageOf(LIST, rows, limit, ({ closed_at, market_id, number }) => ({
        at: closed_at,
        id: `${market_id}-${number}`,
      }))
      return { positions: page.map((row) => recordedPositionView(specOf(specs, row), row)), next_cursor }
    },
  )
}

/** Changes margin and leverage of the caller's positions, and lists the attempts. */
import { callerOf } from '../http/access.ts'
import type { App } from '../http/types.ts'
import type { ReadAfter } from '../read-after/read-after.ts'
import { timeRange } from '../wire/times.ts'
import type { Adjustments } from './adjustments.ts'
import { LEVERAGE_ERRORS, MARGIN_ERRORS } from './errors.ts'
import { attemptsOfUser } from './query.ts'
import {
  AdjustLeverageAnswer,
  AdjustLeverageBody,
  AdjustMarginAnswer,
  AdjustMarginBody,
  Attempts,
  AttemptsQuery,
} from './schema.ts'
import { attemptView } from './view.ts'

export interface AdjustmentRoutePorts {
  readonly adjustments: Adjustments
  readonly readAfter: ReadAfter
}

const OUTCOME =
  'Answered when the chain has executed it and its events are as expected. After 408 the outcome is unknown: repeat the same signed request, or read the attempt.'

export function adjustmentRoutes(app: App, { adjustments, readAfter }: AdjustmentRoutePorts): void {
  app.post(
    '/v0/account/adjust-leverage',
    {
      config: { access: 'user', bucket: 'adjustments', errors: LEVERAGE_ERRORS },
      schema: {
        tags: ['account'],
        summary: 'Change the leverage of a position',
        description: `Cancels the open orders of the account in the market, and moves margin so that equity is notional / leverage. ${OUTCOME}`,
        operationId: 'adjustLeverage',
        body: AdjustLeverageBody,
        response: { 200: AdjustLeverageAnswer },
      },
    },
    (request) => adjustments.leverage(callerOf(request), request.body),
  )
  app.post(
    '/v0/account/adjust-margin',
    {
      config: { access: 'user', bucket: 'adjustments', errors: MARGIN_ERRORS },
      schema: {
        tags: ['account'],
        summary: 'Add margin to a position, or remove it',
        description: OUTCOME,
        operationId: 'adjustMargin',
        body: AdjustMarginBody,
        response: { 200: AdjustMarginAnswer },
      },
    },
    (request) => adjustments.margin(callerOf(request), request.body),
  )
  app.get(
    '/v0/account/adjustment-attempts',
    {
      config: { access: 'user' },
      schema: {
        tags: ['account'],
        summary: "List the caller's adjustments, newest first",
        operationId: 'listAdjustmentAttempts',
        querystring: AttemptsQuery,
        response: { 200: Attempts },
      },
    },
    async (request) => {
      const {
        adjustment_id: adjustmentId,
        market_id: marketId,
        kind,
        status,
        limit = 100,
        ...times
      } = request.query
      const filter = { adjustmentId, marketId, kind, status, limit, ...timeRange(times) }
      const { userId } = callerOf(request)
      const rows = await readAfter.read(request, { tables: ['read.adjustment_attempts'] }, (db) =>
        attemptsOfUser(db, userId, filter),
      )
      return { attempts: rows.map(attemptView) }
    },
  )
}

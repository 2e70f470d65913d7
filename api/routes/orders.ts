/** Placing and cancelling orders: the caller's own only. */
import { ApiError } from '../errors.ts'
import { callerOf } from '../http/access.ts'
import { type App, answers } from '../http/types.ts'
import type { Intake } from '../intake/intake.ts'
import {
  CancelAnswer,
  CancelBody,
  OrderHashParams,
  PlaceOrderAnswer,
  PlaceOrderBody,
} from '../schemas/order.ts'

export interface OrderPorts {
  readonly intake: Intake
}

const tags = ['orders']

export function orderRoutes(app: App, { intake }: OrderPorts): void {
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

/** Placing and cancelling orders: the caller's own only. */
import type { CancelSwitch } from '../cancel-switch/cancel-switch.ts'
import type { Intake } from '../commands/pipeline.ts'
import { ApiError } from '../errors.ts'
import { callerOf } from '../http/access.ts'
import { BATCH_BODY_LIMIT } from '../http/errors.ts'
import { type App, answers } from '../http/types.ts'
import {
  CancelAnswer,
  CancelBody,
  OrderHashParams,
  PlaceOrderAnswer,
  PlaceOrderBody,
} from '../orders/schema.ts'
import {
  CancelAllAnswer,
  CancelAllBody,
  CancelBatchAnswer,
  CancelBatchBody,
  PlaceBatchAnswer,
  PlaceBatchBody,
  SwitchAnswer,
  SwitchBody,
} from './schema.ts'
import { ValidateAnswer, ValidateBody } from './validation-schema.ts'

export interface OrderPorts {
  readonly intake: Intake
  readonly cancelSwitch: CancelSwitch
}

const tags = ['orders']

export function orderRoutes(app: App, ports: OrderPorts): void {
  placing(app, ports)
  placingMany(app, ports)
  cancelling(app, ports)
  cancellingMany(app, ports)
  switching(app, ports)
}

/** Postgres keeps neither NUL nor half a surrogate pair. */
function storable(field: string, text: string | undefined): string | null {
  if (text === undefined) return null
  if (text.isWellFormed() && !text.includes('\0')) return text
  throw new ApiError('INVALID_FIELD', {
    field,
    expected: 'a text without NUL and without half surrogate pairs',
    received: text,
  })
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
    '/v0/orders/validate',
    {
      config: { access: 'user' },
      schema: {
        tags,
        summary: 'Try an order without placing it',
        description:
          'Every check of a placement, and the same errors; nothing is stored. Without a signature the answer says what to sign.',
        operationId: 'validateOrder',
        body: ValidateBody,
        response: answers(ValidateAnswer),
      },
    },
    (request) => intake.validate(callerOf(request), request.body),
  )
}

function placingMany(app: App, { intake }: OrderPorts): void {
  app.post(
    '/v0/orders/place/batch',
    {
      bodyLimit: BATCH_BODY_LIMIT,
      config: { access: 'user', bucket: 'batches' },
      schema: {
        tags,
        summary: 'Place up to 50 signed orders',
        description:
          'Taken one after the other, in one market or several, by one transaction. In mode `atomic` a refusal of one is the answer ' +
          'for all: `details.index` and `details.errors` say which and why. Sending the same body again is safe.',
        operationId: 'placeOrders',
        body: PlaceBatchBody,
        response: answers(PlaceBatchAnswer),
      },
    },
    async (request, reply) => {
      const json = await intake.placeBatch(callerOf(request), request.body)
      return reply.type('application/json; charset=utf-8').send(json as never)
    },
  )
}

function cancelling(app: App, { intake }: OrderPorts): void {
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
      const reason = storable('reason', request.body.reason)
      return intake.cancel(callerOf(request), request.params.order_hash.toLowerCase(), reason)
    },
  )
}

function cancellingMany(app: App, { intake }: OrderPorts): void {
  app.post(
    '/v0/orders/cancel/batch',
    {
      config: { access: 'user', bucket: 'cancels' },
      schema: {
        tags,
        summary: 'Cancel up to 100 orders by their hashes',
        description: 'Each for itself, by one transaction. Sending the same body again is safe.',
        operationId: 'cancelOrders',
        body: CancelBatchBody,
        response: answers(CancelBatchAnswer),
      },
    },
    (request) => intake.cancelBatch(callerOf(request), request.body, storable('reason', request.body.reason)),
  )
  app.post(
    '/v0/orders/cancel/all',
    {
      config: { access: 'user', bucket: 'cancels' },
      schema: {
        tags,
        summary: 'Cancel every live order, in one market or in all',
        description:
          'All that were accepted before it, waiting conditional orders included. Repeating it is safe.',
        operationId: 'cancelAllOrders',
        body: CancelAllBody,
        response: answers(CancelAllAnswer),
      },
    },
    (request) => {
      const { market_id: marketId, reason } = request.body
      return intake.cancelAll(
        callerOf(request),
        marketId === undefined ? null : Number(marketId),
        storable('reason', reason),
      )
    },
  )
}

function switching(app: App, { cancelSwitch }: OrderPorts): void {
  app.post(
    '/v0/orders/cancel/all-after',
    {
      config: { access: 'user', bucket: 'cancels' },
      schema: {
        tags,
        summary: 'Arm the dead-man switch',
        description:
          'Unless this is called again within `timeout_seconds`, every live order of the account is cancelled, with the reason ' +
          'DEAD_MAN_SWITCH. It fires once. 0 disarms.',
        operationId: 'cancelAllAfter',
        body: SwitchBody,
        response: answers(SwitchAnswer),
      },
    },
    (request) => cancelSwitch.set(callerOf(request).userId, request.body.timeout_seconds),
  )
  app.get(
    '/v0/orders/cancel/all-after',
    {
      config: { access: 'user' },
      schema: {
        tags,
        summary: 'The dead-man switch',
        operationId: 'getCancelAllAfter',
        response: answers(SwitchAnswer),
      },
    },
    (request) => cancelSwitch.show(callerOf(request).userId),
  )
}

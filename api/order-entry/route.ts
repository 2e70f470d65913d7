/** Placing and cancelling the caller's orders. */
import type { preHandlerHookHandler } from 'fastify'
import { callerOf } from '../http/access.ts'
import { costOfCancels } from '../http/answer-cost.ts'
import { COMPUTATION } from '../http/cost-budget.ts'
import { BATCH_BODY_LIMIT } from '../http/errors.ts'
import type { App } from '../http/types.ts'
import { ClientOrderIdParams, OrderHashParams } from '../orders/schema.ts'
import {
  CancelAllAnswer,
  CancelAllBody,
  CancelBatchAnswer,
  CancelBatchBody,
  PlaceBatchAnswer,
  PlaceBatchBody,
} from './batch-schema.ts'
import {
  CANCEL_ERRORS,
  CLOSE_ERRORS,
  COMMAND_ERRORS,
  PLACEMENT_ERRORS,
  REPLACE_ERRORS,
  VALIDATION_ERRORS,
} from './errors.ts'
import type { OrderCommands } from './order-commands.ts'
import { ReplaceAnswer, ReplaceBatchAnswer, ReplaceBatchBody, ReplaceBody } from './replace-schema.ts'
import {
  CancelAnswer,
  CancelBody,
  ClosePositionAnswer,
  ClosePositionBody,
  PlaceOrderAnswer,
  PlaceOrderBody,
} from './schema.ts'
import { SIGNING_STEPS } from './signing-example.ts'
import { ValidateAnswer, ValidateBody } from './validation-schema.ts'

export interface OrderEntryPorts {
  readonly commands: OrderCommands
}

const tags = ['orders']

/** The handler returns JSON as a text. */
const answersText: preHandlerHookHandler = (_request, reply, done) => {
  reply.type('application/json; charset=utf-8')
  done()
}

export function orderEntryRoutes(app: App, ports: OrderEntryPorts): void {
  placing(app, ports)
  closing(app, ports)
  placingMany(app, ports)
  replacing(app, ports)
  cancelling(app, ports)
  cancellingMany(app, ports)
}

function placing(app: App, { commands }: OrderEntryPorts): void {
  app.post(
    '/v0/orders',
    {
      config: { access: 'user', bucket: 'orders', lane: true, errors: PLACEMENT_ERRORS },
      schema: {
        tags,
        summary: 'Place a signed order',
        description: `Accepts the order into the book; fills come from later batches. Repeating the same signed order is safe.\n${SIGNING_STEPS}`,
        operationId: 'placeOrder',
        body: PlaceOrderBody,
        response: { 200: PlaceOrderAnswer },
      },
    },
    (request) => commands.place(callerOf(request), request.body),
  )
  app.post(
    '/v0/orders/validate',
    {
      config: { access: 'user', readOnly: true, costOfItems: () => COMPUTATION, errors: VALIDATION_ERRORS },
      schema: {
        tags,
        summary: 'Validate an order without placing it',
        description:
          'Runs every check of a placement as a dry run: same errors without `outcome`, nothing is stored. Without a signature, sign the returned ' +
          '`digest`.',
        operationId: 'validateOrder',
        body: ValidateBody,
        response: { 200: ValidateAnswer },
      },
    },
    (request) => commands.validate(callerOf(request), request.body),
  )
}

function closing(app: App, { commands }: OrderEntryPorts): void {
  app.post(
    '/v0/positions/close',
    {
      config: { access: 'user', bucket: 'orders', lane: true, errors: CLOSE_ERRORS },
      schema: {
        tags,
        summary: 'Close a position, or a part of it, at the market',
        description:
          'Places a signed reduce-only market order. The signed quantity is an upper bound: the auction closes at most the position that it finds, ' +
          'so a close never opens or flips a position. Sign at least the position to close all of it; what it has grown beyond the signed quantity ' +
          'stays open, and `staying_quantity` states it. The bound is at most the maximum order size of the market: repeat the close for a larger ' +
          'position. A quantity below the minimum order size is accepted if it closes the whole position. The order takes part in one auction, ' +
          'after which its rest ends: with MARKET_REMAINDER, also what exceeds a position that it has closed, or with PRICE_PROTECTION. ' +
          'Counts as one placement. Repeating the same signed order is safe.',
        operationId: 'closePosition',
        body: ClosePositionBody,
        response: { 200: ClosePositionAnswer },
      },
    },
    (request) => commands.close(callerOf(request), request.body),
  )
}

function placingMany(app: App, { commands }: OrderEntryPorts): void {
  app.post(
    '/v0/orders/place/batch',
    {
      bodyLimit: BATCH_BODY_LIMIT,
      preHandler: answersText,
      config: {
        access: 'user',
        bucket: 'batches',
        lane: true,
        errors: [...PLACEMENT_ERRORS, 'CLIENT_REQUEST_REUSED'],
      },
      schema: {
        tags,
        summary: 'Place up to 50 signed orders',
        description:
          'Processes the orders in sequence in one transaction, in one market or several. In mode `atomic` one rejected order ' +
          'rejects the whole batch; `details.index` and `details.errors` list the rejected orders. Repeating the same body is safe.',
        operationId: 'placeOrders',
        body: PlaceBatchBody,
        response: { 200: PlaceBatchAnswer },
      },
    },
    async (request) => (await commands.placeBatch(callerOf(request), request.body)).json as never,
  )
}

const REPLACING =
  'The old order ends and the new one is accepted, or neither: a rejection leaves the old order as it was. Both are of the same market, side and ' +
  'account. The reservation of the old order pays for the new one, which has a new place in time and, unless it names another, the ' +
  '`client_order_id` of the old order. A waiting conditional order can be replaced; an order without a quantity left, because all of it is filled, ' +
  'settling or cancelled, cannot. '

const OLD_SIGNATURE =
  'The signature of the old order stays valid on the chain until its expiration: sign quotes with a short `expiration_seconds`. '

function replacing(app: App, { commands }: OrderEntryPorts): void {
  app.post(
    '/v0/orders/replace',
    {
      config: { access: 'user', bucket: 'orders', lane: true, errors: REPLACE_ERRORS },
      schema: {
        tags,
        summary: 'Replace an order by a signed order',
        description:
          `${REPLACING}${OLD_SIGNATURE}Counts as one placement. Repeating it with the same signed order is safe. Errors about the new order name the ` +
          'fields of a placement.',
        operationId: 'replaceOrder',
        body: ReplaceBody,
        response: { 200: ReplaceAnswer },
      },
    },
    (request) => commands.replace(callerOf(request), request.body),
  )
  app.post(
    '/v0/orders/replace/batch',
    {
      bodyLimit: BATCH_BODY_LIMIT,
      preHandler: answersText,
      config: {
        access: 'user',
        bucket: 'batches',
        lane: true,
        errors: [...REPLACE_ERRORS, 'CLIENT_REQUEST_REUSED'],
      },
      schema: {
        tags,
        summary: 'Replace up to 50 orders by signed orders',
        description:
          `${REPLACING}Processed in sequence in one transaction. In mode \`atomic\` one rejected replacement rejects the whole batch; ` +
          '`details.index` and `details.errors` list the rejected ones. Repeating the same body is safe.',
        operationId: 'replaceOrders',
        body: ReplaceBatchBody,
        response: { 200: ReplaceBatchAnswer },
      },
    },
    async (request) => (await commands.replaceBatch(callerOf(request), request.body)).json as never,
  )
}

function cancelling(app: App, { commands }: OrderEntryPorts): void {
  app.post(
    '/v0/orders/cancel/by-hash/:order_hash',
    {
      config: { access: 'user', bucket: 'cancels', lane: true, errors: CANCEL_ERRORS },
      schema: {
        tags,
        summary: 'Cancel an order',
        description:
          'Repeating a cancel is safe. If a batch is settling a part of the order, the cancel takes effect after that batch.',
        operationId: 'cancelOrder',
        params: OrderHashParams,
        body: CancelBody,
        response: { 200: CancelAnswer },
      },
    },
    (request) => commands.cancel(callerOf(request), request.params.order_hash, request.body),
  )
  app.post(
    '/v0/orders/cancel/by-client-id/:client_order_id',
    {
      config: { access: 'user', bucket: 'cancels', lane: true, errors: CANCEL_ERRORS },
      schema: {
        tags,
        summary: 'Cancel an order by its client_order_id',
        description:
          'Cancels the live order with this label. If no live order has it, the answer is the order with it that was accepted last. It waits ' +
          'for the placements that this process has received before it.',
        operationId: 'cancelOrderByClientId',
        params: ClientOrderIdParams,
        body: CancelBody,
        response: { 200: CancelAnswer },
      },
    },
    (request) => commands.cancelLabelled(callerOf(request), request.params.client_order_id, request.body),
  )
}

function cancellingMany(app: App, { commands }: OrderEntryPorts): void {
  app.post(
    '/v0/orders/cancel/batch',
    {
      config: {
        access: 'user',
        bucket: 'cancels',
        lane: true,
        costOfItems: ({ orderHashes }: CancelBatchBody) => costOfCancels(orderHashes.length),
        errors: [...COMMAND_ERRORS, 'CLIENT_REQUEST_REUSED'],
      },
      schema: {
        tags,
        summary: 'Cancel up to 100 orders by their hashes',
        description:
          'Each cancel succeeds or fails by itself, in one transaction. Repeating the same body is safe. It counts as one cancel for each five orders.',
        operationId: 'cancelOrders',
        body: CancelBatchBody,
        response: { 200: CancelBatchAnswer },
      },
    },
    (request) => commands.cancelBatch(callerOf(request), request.body),
  )
  app.post(
    '/v0/orders/cancel/all',
    {
      config: {
        access: 'user',
        bucket: 'cancels',
        lane: true,
        errors: [...COMMAND_ERRORS, 'MARKET_NOT_FOUND'],
      },
      schema: {
        tags,
        summary: 'Cancel every live order, in one market or in all markets',
        description:
          'Cancels all orders that were accepted before it, including conditional orders. Repeating it is safe.',
        operationId: 'cancelAllOrders',
        body: CancelAllBody,
        response: { 200: CancelAllAnswer },
      },
    },
    (request) => commands.cancelAll(callerOf(request), request.body),
  )
}

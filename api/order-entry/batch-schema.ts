/** Commands over several orders: batches of placements or cancels, and cancelling all. */
import Type, { type Static, type TArray, type TSchema } from 'typebox'
import { Balance } from '../accounts/schema.ts'
import { Order } from '../orders/schema.ts'
import { errorCode, expects, marketInput, named, namedInput, ReadAfter, words } from '../wire/schema.ts'
import { CancelAnswer, cancelReason, PlaceOrderBody } from './schema.ts'

export const MAX_BATCH_ORDERS = 50
export const MAX_BATCH_CANCELS = 100
export const BATCH_MODES = ['atomic', 'best_effort'] as const

/** A list whose items the command validates one by one, so that one rejected item leaves the rest valid. */
export const each = <Item extends TSchema>(item: Item, options: Record<string, unknown>): TArray<Item> =>
  Type.Array(item, { ...options, 'x-each': true })

export const clientRequestId = Type.String({
  pattern: '^[\\x20-\\x7e]{1,100}$',
  ...expects('1 to 100 printable ASCII characters'),
  description:
    'Your id of this command. Repeating the same body with the same id returns the first answer and has no further effect. ' +
    'Stored for at least 24 hours.',
})

const ItemError = Type.Object(
  {
    message: Type.String(),
    details: Type.Object({ code: errorCode }, { additionalProperties: true }),
  },
  { description: 'Why this item was rejected: an error body without the request id.' },
)

export const isDuplicateBatch = Type.Boolean({
  description: 'Whether this command was executed before; the answer is then the one of its execution.',
})

export const PlaceBatchBody = namedInput('PlaceBatchBody', {
  client_request_id: clientRequestId,
  mode: words(
    BATCH_MODES,
    'atomic: all orders are accepted into the book together, or none. best_effort: each order is accepted or rejected by itself. ' +
      'Neither mode promises fills.',
  ),
  orders: each(PlaceOrderBody, {
    minItems: 1,
    maxItems: MAX_BATCH_ORDERS,
    ...expects(`1 to ${MAX_BATCH_ORDERS} signed orders`),
    description: `Signed orders, at most ${MAX_BATCH_ORDERS}, of one market or several; processed in this order.`,
  }),
})
export type PlaceBatchBody = Static<typeof PlaceBatchBody>

const PlacedItem = Type.Object({
  order: Order,
  is_duplicate: Type.Boolean({ description: 'Whether this signed order was accepted before.' }),
  read_after: ReadAfter,
})
export const RefusedItem = Type.Object({ error: ItemError })

export const PlaceBatchAnswer = named('PlaceBatchAnswer', {
  client_request_id: Type.String(),
  mode: Type.String(),
  is_duplicate: isDuplicateBatch,
  accepted: Type.Integer({ description: 'Number of accepted orders, duplicates included.' }),
  refused: Type.Integer({ description: 'Number of rejected orders.' }),
  results: Type.Array(Type.Union([PlacedItem, RefusedItem]), {
    description:
      'One per order, in the order of the request: either `order`, `is_duplicate` and `read_after`, or `error`.',
  }),
  balance: Balance,
  read_after: ReadAfter,
})
export type PlaceBatchAnswer = Static<typeof PlaceBatchAnswer>

/** Hints for fields of the former request. */
const HINTS = {
  cancelSignature: 'Cancels need no signature of their own any more: leave it out.',
  client_request_id: 'A batch of cancels needs a client_request_id; reuse it when you retry.',
  order_hashes: 'The field is called orderHashes.',
} as const

export const CancelBatchBody = namedInput(
  'CancelBatchBody',
  {
    client_request_id: clientRequestId,
    orderHashes: Type.Array(
      Type.String({ pattern: '^0x[0-9a-fA-F]{64}$', ...expects('0x and 64 hex digits') }),
      {
        minItems: 1,
        maxItems: MAX_BATCH_CANCELS,
        ...expects(`1 to ${MAX_BATCH_CANCELS} order hashes`),
        description: `Hashes of your orders, at most ${MAX_BATCH_CANCELS}, of one market or several.`,
      },
    ),
    reason: Type.Optional(cancelReason),
  },
  { 'x-hints': HINTS },
)
export type CancelBatchBody = Static<typeof CancelBatchBody>

const CancelledItem = Type.Object({ order_hash: Type.String(), ...CancelAnswer.properties })
const UncancelledItem = Type.Object({ order_hash: Type.String(), error: ItemError })

export const CancelBatchAnswer = named('CancelBatchAnswer', {
  client_request_id: Type.String(),
  is_duplicate: isDuplicateBatch,
  results: Type.Array(Type.Union([CancelledItem, UncancelledItem]), {
    description:
      'One per hash, in the order of the request. `order` is the current state, also if the command is repeated.',
  }),
  read_after: ReadAfter,
})
export type CancelBatchAnswer = Static<typeof CancelBatchAnswer>

export const CancelAllBody = namedInput('CancelAllBody', {
  market_id: Type.Optional(marketInput('Cancel only orders of this market.')),
  reason: Type.Optional(cancelReason),
})
export type CancelAllBody = Static<typeof CancelAllBody>

export const CancelAllAnswer = named('CancelAllAnswer', {
  cancelled_count: Type.Integer({ description: 'Number of orders that this command has cancelled.' }),
  is_duplicate: Type.Boolean({ description: 'Whether there was nothing left to cancel.' }),
  results: Type.Array(CancelledItem, {
    description:
      'Every order that was live, with its current status. Orders that were already waiting for their batch are duplicates.',
  }),
  read_after: ReadAfter,
})
export type CancelAllAnswer = Static<typeof CancelAllAnswer>

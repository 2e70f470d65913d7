/** Commands over several orders: placing and cancelling in batches, cancelling all, the dead-man switch. */
import Type, { type Static, type TArray, type TSchema } from 'typebox'
import { Balance, CancelAnswer, cancelReason, Order, PlaceOrderBody } from '../orders/schema.ts'
import { closed, expects, marketInput, nullable, ReadAfter, Time, words } from '../wire/schema.ts'

export const MAX_BATCH_ORDERS = 50
export const MAX_BATCH_CANCELS = 100

/** A list whose items are validated one by one by whoever takes them, so that an item can be refused alone. */
const each = <Item extends TSchema>(item: Item, options: Record<string, unknown>): TArray<Item> =>
  Type.Array(item, { ...options, 'x-each': true })

const clientRequestId = Type.String({
  pattern: '^[\\x20-\\x7e]{1,100}$',
  ...expects('1 to 100 printable ASCII characters'),
  description:
    'Your name for this command. Sending the same body with it again is answered as the first time, and done once. ' +
    'Kept for at least 24 hours.',
})

const ItemError = Type.Object(
  {
    message: Type.String(),
    details: Type.Object({ code: Type.String() }, { additionalProperties: true }),
  },
  { description: 'Why this item was refused: as an error answer, without the request id.' },
)

const isDuplicate = Type.Boolean({
  description: 'This command was done before: the answer is the one it had then.',
})

export const PlaceBatchBody = closed({
  client_request_id: clientRequestId,
  mode: words(
    ['atomic', 'best_effort'],
    'atomic: all orders are accepted into the book together, or none. best_effort: each for itself. Neither means that they fill.',
  ),
  orders: each(PlaceOrderBody, {
    minItems: 1,
    maxItems: MAX_BATCH_ORDERS,
    ...expects(`1 to ${MAX_BATCH_ORDERS} signed orders`),
    description: `Signed orders, at most ${MAX_BATCH_ORDERS}, of one market or several; taken one after the other.`,
  }),
})
export type PlaceBatchBody = Static<typeof PlaceBatchBody>

const PlacedItem = Type.Object({
  order: Order,
  is_duplicate: Type.Boolean({ description: 'This signed order had been accepted before.' }),
  read_after: ReadAfter,
})
const RefusedItem = Type.Object({ error: ItemError })

export const PlaceBatchAnswer = Type.Object({
  client_request_id: Type.String(),
  mode: Type.String(),
  is_duplicate: isDuplicate,
  accepted: Type.Integer({ description: 'Orders that are accepted, duplicates included.' }),
  refused: Type.Integer(),
  results: Type.Array(Type.Union([PlacedItem, RefusedItem]), {
    description:
      'One per order, in their order: either `order`, `is_duplicate` and `read_after`, or `error`.',
  }),
  balance: Balance,
  read_after: ReadAfter,
})
export type PlaceBatchAnswer = Static<typeof PlaceBatchAnswer>

const REMOVED = {
  cancelSignature: 'Cancels need no signature of their own any more: leave it out.',
  client_request_id: 'Batch cancels are named by a client_request_id; reuse it when you retry.',
  order_hashes: 'The field is called orderHashes.',
} as const

export const CancelBatchBody = closed(
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
  { 'x-hints': REMOVED },
)
export type CancelBatchBody = Static<typeof CancelBatchBody>

const CancelledItem = Type.Object({ order_hash: Type.String(), ...CancelAnswer.properties })
const UncancelledItem = Type.Object({ order_hash: Type.String(), error: ItemError })

export const CancelBatchAnswer = Type.Object({
  client_request_id: Type.String(),
  is_duplicate: isDuplicate,
  results: Type.Array(Type.Union([CancelledItem, UncancelledItem]), {
    description:
      'One per hash, in their order. `order` is as it is now, also when the command is sent again.',
  }),
  read_after: ReadAfter,
})
export type CancelBatchAnswer = Static<typeof CancelBatchAnswer>

export const CancelAllBody = closed({
  market_id: Type.Optional(marketInput('Only orders of this market.')),
  reason: Type.Optional(cancelReason),
})
export type CancelAllBody = Static<typeof CancelAllBody>

export const CancelAllAnswer = Type.Object({
  cancelled_count: Type.Integer({ description: 'Orders that this command has cancelled.' }),
  is_duplicate: Type.Boolean({ description: 'There was nothing left to cancel.' }),
  results: Type.Array(CancelledItem, {
    description:
      'Every order that was live, with its status now. Those that waited for their batch already are duplicates.',
  }),
  read_after: ReadAfter,
})
export type CancelAllAnswer = Static<typeof CancelAllAnswer>

export const SWITCH_SECONDS = { least: 5, most: 900 } as const

export const SwitchBody = closed({
  timeout_seconds: Type.Integer({
    minimum: 0,
    maximum: SWITCH_SECONDS.most,
    ...expects(`${SWITCH_SECONDS.least} to ${SWITCH_SECONDS.most}, or 0 to disarm`),
    description: `${SWITCH_SECONDS.least} to ${SWITCH_SECONDS.most}; 0 disarms. Counts from the server's time at arrival.`,
  }),
})

export const SwitchAnswer = Type.Object({
  armed: Type.Boolean(),
  timeout_seconds: nullable(Type.Integer({ description: 'As armed last.' })),
  fire_at: nullable(
    Time('When every live order of the account is cancelled unless it is armed again before.'),
  ),
  remaining_seconds: nullable(Type.Number({ description: 'Until then; 0 once it is due.' })),
  server_time: Time('The time that this counts from.'),
})
export type SwitchAnswer = Static<typeof SwitchAnswer>

/** Replacing one order, or several. */
import Type, { type Static } from 'typebox'
import { IF_FILLED } from '../../domain/exchange/decide/orders/command.ts'
import { Balance } from '../accounts/schema.ts'
import { ClientOrderId, Order } from '../orders/schema.ts'
import { closed, expects, named, namedInput, ReadAfter, words } from '../wire/schema.ts'
import {
  BATCH_MODES,
  clientRequestId,
  each,
  isDuplicateBatch,
  MAX_BATCH_ORDERS,
  RefusedItem,
} from './batch-schema.ts'
import { PlaceOrderAnswer, PlaceOrderBody } from './schema.ts'

export const ReplaceBody = namedInput('ReplaceBody', {
  cancel: closed(
    {
      order_hash: Type.Optional(
        Type.String({
          pattern: '^0x[0-9a-fA-F]{64}$',
          ...expects('0x and 64 hex digits'),
          description: 'Hash of the order that is replaced.',
        }),
      ),
      client_order_id: Type.Optional(ClientOrderId),
    },
    {
      description:
        'The order that is replaced, of the same market and side: `order_hash`, or the `client_order_id` of a live order; not both.',
    },
  ),
  order: PlaceOrderBody,
  if_filled: Type.Optional(
    words(
      IF_FILLED,
      'If a part of the order is filled or settling. refuse (default): nothing changes. reduce: the new order may fill its signed quantity ' +
        'less that part; it counts as the part of the new order that is done.',
    ),
  ),
})
export type ReplaceBody = Static<typeof ReplaceBody>

export const ReplaceAnswer = named('ReplaceAnswer', {
  ...PlaceOrderAnswer.properties,
  is_duplicate: Type.Boolean({
    description:
      'Whether the same signed order has replaced this order before; both are shown as they are now.',
  }),
  replaced: Order,
})
export type ReplaceAnswer = Static<typeof ReplaceAnswer>

export const ReplaceBatchBody = namedInput('ReplaceBatchBody', {
  client_request_id: clientRequestId,
  mode: words(
    BATCH_MODES,
    'atomic: all replacements take effect together, or none. best_effort: each one succeeds or fails by itself.',
  ),
  orders: each(ReplaceBody, {
    minItems: 1,
    maxItems: MAX_BATCH_ORDERS,
    ...expects(`1 to ${MAX_BATCH_ORDERS} replacements`),
    description: `Replacements, at most ${MAX_BATCH_ORDERS}, of one market or several; processed in this order.`,
  }),
})
export type ReplaceBatchBody = Static<typeof ReplaceBatchBody>

const ReplacedItem = Type.Object({
  order: Order,
  replaced: Order,
  is_duplicate: Type.Boolean({
    description: 'Whether the same signed order has replaced this order before.',
  }),
  read_after: ReadAfter,
})

export const ReplaceBatchAnswer = named('ReplaceBatchAnswer', {
  client_request_id: Type.String(),
  mode: Type.String(),
  is_duplicate: isDuplicateBatch,
  accepted: Type.Integer({ description: 'Number of replacements that took effect, duplicates included.' }),
  refused: Type.Integer({ description: 'Number of rejected replacements.' }),
  results: Type.Array(Type.Union([ReplacedItem, RefusedItem]), {
    description:
      'One per replacement, in the order of the request: either `order`, `replaced`, `is_duplicate` and `read_after`, or `error`. ' +
      '`replaced` is the current state, also if the command is repeated.',
  }),
  balance: Balance,
  read_after: ReadAfter,
})
export type ReplaceBatchAnswer = Static<typeof ReplaceBatchAnswer>

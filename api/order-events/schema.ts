/** Lifecycle events of orders. */
import Type, { type Static } from 'typebox'
import { MaybeTrigger } from '../orders/trigger-schema.ts'
import {
  bookmarkQuery,
  closed,
  maybeAmountOf,
  NextCursor,
  named,
  nullable,
  PositiveInteger,
  pageQuery,
  rangeQuery,
  Time,
  words,
} from '../wire/schema.ts'

export const EVENT_KINDS = ['CREATED', 'PARTIALLY_FILLED', 'FILLED', 'CANCELLED', 'EXPIRED'] as const
const KINDS = 'CREATED, PARTIALLY_FILLED, FILLED, CANCELLED or EXPIRED.'

export const OrderEvent = named('OrderEvent', {
  event_id: Type.String({ description: 'Unique and stable id of the event.' }),
  kind: words(EVENT_KINDS, KINDS),
  order_id: Type.String(),
  order_hash: Type.String(),
  client_order_id: nullable(Type.String({ description: 'Your label of the order.' })),
  user_id: Type.Integer(),
  market_id: Type.Integer(),
  symbol: Type.String(),
  shard_seq: Type.String({ description: "Sequence of the event in the market's journal." }),
  created_at: Time('Time of the event.'),
  details: Type.Object(
    {
      status: nullable(Type.String({ description: 'For CREATED: the status at acceptance.' })),
      status_reason: nullable(Type.String({ description: 'Why the order ended.' })),
      cancel_reason: nullable(Type.String({ description: 'The `reason` of the cancel request.' })),
      fill_id: nullable(Type.String()),
      batch_id: nullable(
        Type.Integer({ description: 'The auction of the fill, or the auction that ended the order.' }),
      ),
      part: nullable(Type.Integer()),
      action_id: nullable(Type.Integer()),
      tx_hash: nullable(Type.String()),
      ...maybeAmountOf('price', 'Price of the fill.'),
      ...maybeAmountOf('quantity', 'Quantity of the fill.'),
      ...maybeAmountOf('fee', 'Fee of the fill.'),
      trigger: MaybeTrigger,
    },
    { description: 'Fields that do not apply to the kind of event are null.' },
  ),
})
export type OrderEvent = Static<typeof OrderEvent>

export const OrderEvents = named('OrderEvents', { events: Type.Array(OrderEvent), next_cursor: NextCursor })
export const OrderEventsQuery = closed({ ...rangeQuery('events'), ...pageQuery, ...bookmarkQuery })
export const UserEventsQuery = closed({
  market_id: Type.Optional(PositiveInteger('Only events in this market.')),
  kind: Type.Optional(words(EVENT_KINDS, 'Only events of this kind.')),
  ...rangeQuery('events'),
  ...pageQuery,
  ...bookmarkQuery,
})

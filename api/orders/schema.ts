/** Orders as their owner reads them. */
import Type, { type Static } from 'typebox'
import { ORDER_TYPES, STATUS_REASONS, TIMES_IN_FORCE } from '../../domain/orders/order.ts'
import {
  amountOf,
  bookmarkQuery,
  closed,
  documentedAs,
  expects,
  maybeAmountOf,
  NextCursor,
  named,
  nullable,
  PositiveInteger,
  pageQuery,
  rangeQuery,
  Side,
  Time,
  words,
} from '../wire/schema.ts'
import { MaybeTrigger } from './trigger-schema.ts'

export const ORDER_STATUSES = [
  'OPEN',
  'FILLED',
  'CANCELLED',
  'EXPIRED',
  'PENDING_TRIGGER',
  'CANCEL_PENDING_FINALIZE',
] as const

export const Order = named('Order', {
  order_id: Type.String(),
  order_hash: Type.String({ description: 'EIP-712 digest of the order.' }),
  client_order_id: nullable(
    Type.String({ description: 'Your label of the order; null if it was placed without one.' }),
  ),
  market_id: Type.Integer(),
  symbol: Type.String(),
  user_id: Type.Integer(),
  maker: Type.String(),
  signer: Type.Union([Type.String(), Type.Null()], {
    description: "The maker, or one of the maker's session keys; null for a forced order.",
  }),
  side: Side,
  order_type: Type.String(documentedAs(ORDER_TYPES)),
  status: words(ORDER_STATUSES, 'OPEN, PENDING_TRIGGER and CANCEL_PENDING_FINALIZE are active.'),
  status_reason: nullable(
    Type.String({
      ...documentedAs([...STATUS_REASONS, null]),
      description:
        `Why the order ended: ${STATUS_REASONS.join(', ')}. POSITION_CLOSED on an active order: it has left the book, ` +
        'and ends once the batch that closed its position is mined.',
    }),
  ),
  cancel_reason: nullable(Type.String({ description: 'The `reason` of the cancel request.' })),
  ...amountOf('price', 'Limit price; 0 for market orders.'),
  ...maybeAmountOf(
    'effective_price',
    'Limit at which an open limit order takes part at the current oracle price, where that is not `price`: the ' +
      'edge of the price band, or for the part that opens a position the price that meets the initial margin requirement.',
  ),
  ...maybeAmountOf(
    'protection_price',
    'The worst price at which the batch that ran with this market order could fill it. Null for limit orders, and while a market order ' +
      'waits for its batch.',
  ),
  ...amountOf(
    'quantity',
    'Quantity that may fill: as signed, or less if the order replaced another one with if_filled reduce.',
  ),
  ...amountOf('signed_quantity', 'Quantity as signed.'),
  ...amountOf('filled_quantity', 'Quantity settled on the chain.'),
  ...amountOf('settling_quantity', 'Quantity matched in a batch that is settling.'),
  ...amountOf('remaining_quantity', 'Quantity minus filled and settling quantity.'),
  ...maybeAmountOf('average_price', 'Average price of the settled fills, rounded down at 18 decimals.'),
  ...amountOf('fee', 'Fees charged for the settled fills.'),
  ...amountOf('reserved_margin', 'Margin and fee allowance reserved for the part of the order in the book.'),
  ...amountOf('trigger_price', '0 if the order is not conditional.'),
  trigger: MaybeTrigger,
  leverage: Type.Integer(),
  reduce_only: Type.Boolean(),
  time_in_force: words(TIMES_IN_FORCE, 'See the placement.'),
  post_only: Type.Boolean({ description: 'Whether the order was accepted as post-only.' }),
  bracket_id: nullable(
    Type.Integer({ description: 'Number of the bracket of the order; null without one.' }),
  ),
  replaces: nullable(
    Type.String({ description: 'Id of the order that this one has replaced; null if it was placed.' }),
  ),
  builder: nullable(
    Type.String({ description: 'Label of the program that has built the order, as it was sent.' }),
  ),
  forced: Type.Boolean({
    description:
      'True for an order of a liquidation: the exchange places it without a signature, and it cannot be cancelled.',
  }),
  expiration_seconds: Type.Integer(),
  salt: Type.String(),
  created_at: Time('Time of acceptance.'),
  updated_at: Time('Time of the last change.'),
})
export type Order = Static<typeof Order>

export const OrderHashParams = closed({
  order_hash: Type.String({
    pattern: '^0x[0-9a-fA-F]{64}$',
    ...expects('0x and 64 hex digits'),
    description: 'Hash of the order.',
  }),
})

/** A label of ours: neither the signature nor the chain covers it. */
export const ClientOrderId = Type.String({
  pattern: '^[A-Za-z0-9_.:-]{1,64}$',
  ...expects('1 to 64 letters, digits and the characters _ . : -'),
  description:
    'Your label of the order: 1 to 64 letters, digits and the characters _ . : -. No two live orders of an account have the same one; it is free ' +
    'again once the order has ended. It is not signed and unknown to the chain: the exchange alone keeps it.',
})
export const ClientOrderIdParams = closed({ client_order_id: ClientOrderId })
export const OrderIdParams = closed({
  order_id: Type.String({
    pattern: '^\\d{1,10}-[\\w-]{1,90}$',
    ...expects('<market>-<number>'),
    description: '`<market>-<number>`',
  }),
})

export const OrdersQuery = closed({
  market_id: Type.Optional(PositiveInteger('Only orders of this market.')),
  status: Type.Optional(words(ORDER_STATUSES, 'Only orders with this status.')),
  side: Type.Optional(Side),
  ...rangeQuery('orders accepted'),
  ...pageQuery,
  ...bookmarkQuery,
})
export const Orders = named('Orders', { orders: Type.Array(Order), next_cursor: NextCursor })

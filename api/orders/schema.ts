/** Orders, fills and what is sent to place and cancel. */
import Type, { type Static } from 'typebox'
import { ORDER_TYPES, STATUS_REASONS } from '../../domain/orders/order.ts'
import {
  amountOf,
  bookmarkQuery,
  closed,
  decimalInput,
  expects,
  marketInput,
  maybeAmountOf,
  NextCursor,
  nullable,
  PositiveInteger,
  pageQuery,
  ReadAfter,
  Side,
  Time,
  wholeInput,
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

const orderTypeField = Type.String({
  description:
    `One of ${ORDER_TYPES.join(', ')}. The conditional types wait until the mark price crosses their trigger, then enter the next ` +
    'batch as MARKET or LIMIT. Take-profit and stop-loss types are always reduce-only.',
  examples: ['LIMIT', 'MARKET'],
})

const SIZE_IT = 'Ask POST /v0/orders/estimate for the quantity, sign it and send it as `quantity`.'

/** Fields that belong to another endpoint. */
const NOT_HERE = {
  usd_amount: SIZE_IT,
  sizing_intent: SIZE_IT,
  sizing_value: SIZE_IT,
  margin_fraction: SIZE_IT,
} as const

const placement = {
  market_id: marketInput('Market.'),
  side: Side,
  order_type: orderTypeField,
  price: Type.Optional(
    decimalInput('Limit price, a multiple of the tick size. Omit or 0 for market orders.'),
  ),
  quantity: Type.Optional(decimalInput('Quantity, a multiple of the step size.')),
  quantity_e18_raw: Type.Optional(
    Type.String({
      pattern: '^\\d{1,60}$',
      ...expects('a string of up to 60 digits'),
      description: 'Quantity times 1e18.',
    }),
  ),
  leverage: Type.Optional(wholeInput('A positive whole number up to the maximum of the market; default 1.')),
  expiration_seconds: Type.Optional(wholeInput('Unix seconds; 0 (default) never expires.')),
  trigger_price: Type.Optional(decimalInput('Required for conditional types, a multiple of the tick size.')),
  reduce_only: Type.Optional(Type.Boolean({ description: 'The order may only shrink a position.' })),
  salt: Type.String({
    pattern: '^\\d{1,20}$',
    ...expects('a string of digits, a whole number below 2^53'),
    description: 'Decimal string of the signed salt, below 2^53.',
  }),
  signature: Type.String({ description: 'Hex of r, s, v and the suffix 01.' }),
  signature_type: Type.Optional(Type.Integer({ description: 'Send 1.' })),
}

export const PlaceOrderBody = closed(placement, { 'x-hints': NOT_HERE })
export type PlaceOrderBody = Static<typeof PlaceOrderBody>

export const Order = Type.Object({
  order_id: Type.String(),
  order_hash: Type.String({ description: 'EIP-712 digest of the order.' }),
  market_id: Type.Integer(),
  symbol: Type.String(),
  user_id: Type.Integer(),
  maker: Type.String(),
  signer: Type.String({ description: 'The maker, or a session key of his.' }),
  side: Side,
  order_type: Type.String(),
  status: words(ORDER_STATUSES, 'OPEN, PENDING_TRIGGER and CANCEL_PENDING_FINALIZE are active.'),
  status_reason: nullable(Type.String({ description: `Why it ended: ${STATUS_REASONS.join(', ')}.` })),
  cancel_reason: nullable(Type.String({ description: 'What the trader said at the cancel.' })),
  ...amountOf('price', 'Limit price; 0 for market orders.'),
  ...amountOf('quantity', 'Quantity as signed.'),
  ...amountOf('filled_quantity', 'Settled on the chain.'),
  ...amountOf('settling_quantity', 'Matched in a batch that is settling.'),
  ...amountOf('remaining_quantity', 'Quantity less filled and settling.'),
  ...maybeAmountOf('average_price', 'Average price of the settled fills, rounded down at 18 decimals.'),
  ...amountOf('fee', 'Fees charged for the settled fills.'),
  ...amountOf('reserved_margin', 'Margin and fee allowance held back for the part in the book.'),
  ...amountOf('trigger_price', '0 if the order is not conditional.'),
  trigger: MaybeTrigger,
  leverage: Type.Integer(),
  reduce_only: Type.Boolean(),
  expiration_seconds: Type.Integer(),
  salt: Type.String(),
  created_at: Time('When it was accepted.'),
  updated_at: Time('When it last changed.'),
})
export type Order = Static<typeof Order>

export const FILL_STATUSES = ['MATCHED', 'SUBMITTED', 'MINED', 'CONFIRMED', 'RETRYING', 'FAILED'] as const

export const Fill = Type.Object({
  fill_id: Type.String(),
  order_id: Type.String(),
  user_id: Type.Integer(),
  market_id: Type.Integer(),
  symbol: Type.String(),
  batch_id: Type.Integer({ description: 'The auction that matched it.' }),
  part: Type.Integer({ description: 'The part of the batch; each is one transaction.' }),
  action_id: nullable(Type.Integer({ description: "The market contract's number of that action." })),
  side: Side,
  status: words(FILL_STATUSES, 'MATCHED, SUBMITTED, MINED, CONFIRMED; or RETRYING, FAILED.'),
  ...amountOf('price', 'Clearing price of the batch.'),
  ...amountOf('quantity', 'Quantity.'),
  ...amountOf('taker_quantity', 'Share of the quantity that was matched as taker.'),
  ...amountOf('fee', 'The fee charged to this side; 0 until the fill is mined.'),
  ...maybeAmountOf('realized_pnl', 'What the fill realized; null until the fill is mined.'),
  tx_hash: nullable(Type.String()),
  block_number: nullable(Type.Integer()),
  created_at: Time('When it was matched.'),
  updated_at: Time('When its status last changed.'),
})
export type Fill = Static<typeof Fill>

export const Balance = Type.Object({
  ...amountOf('total', 'Free balance and the margin of all positions.'),
  ...amountOf('available', 'Free balance less what orders hold back.'),
  ...amountOf('free', 'What the margin bank holds for the account outside positions.'),
  ...amountOf('reserved', 'Held back for open orders and for fills that are settling.'),
  ...amountOf('position_margin', 'Margin in positions.'),
  ...amountOf('pending_withdrawals', 'Requested and not yet withdrawn; no longer part of the free balance.'),
})
export type Balance = Static<typeof Balance>

export const PlaceOrderAnswer = Type.Object({
  order: Order,
  fills: Type.Array(Fill, { description: 'Fills come with later batches: empty for a new order.' }),
  is_duplicate: Type.Boolean({
    description: 'The same signed order was accepted before; this is that order.',
  }),
  balance: Balance,
  read_after: ReadAfter,
})
export type PlaceOrderAnswer = Static<typeof PlaceOrderAnswer>

export const cancelReason = Type.String({
  maxLength: 200,
  ...expects('a text of at most 200 characters'),
  description: 'At most 200 characters.',
})
export const CancelBody = closed(
  { reason: Type.Optional(cancelReason) },
  { 'x-hints': { cancelSignature: 'Cancels need no signature of their own any more: leave it out.' } },
)

export const CancelAnswer = Type.Object({
  cancelled: Type.Boolean({
    description:
      'The order is cancelled, or will be when its batch has settled, unless that fills it. False where it has filled or expired.',
  }),
  is_duplicate: Type.Boolean({ description: 'It had been cancelled before.' }),
  order: Order,
  read_after: ReadAfter,
})
export type CancelAnswer = Static<typeof CancelAnswer>

export const OrderHashParams = closed({
  order_hash: Type.String({
    pattern: '^0x[0-9a-fA-F]{64}$',
    ...expects('0x and 64 hex digits'),
    description: 'Hash of the order.',
  }),
})
export const OrderIdParams = closed({
  order_id: Type.String({
    pattern: '^\\d{1,10}-[\\w-]{1,90}$',
    ...expects('<market>-<number>'),
    description: '`<market>-<number>`',
  }),
})
export const UserIdParams = closed({ user_id: PositiveInteger("The caller's own id.") })
export const BookmarkQuery = closed(bookmarkQuery)

export const OrdersQuery = closed({
  market_id: Type.Optional(PositiveInteger('Only this market.')),
  status: Type.Optional(words(ORDER_STATUSES, 'Only this status.')),
  side: Type.Optional(Side),
  ...pageQuery,
  ...bookmarkQuery,
})
export const FillsQuery = closed({
  market_id: Type.Optional(PositiveInteger('Only this market.')),
  side: Type.Optional(Side),
  ...pageQuery,
  ...bookmarkQuery,
})
export const OrderFillsQuery = closed({ ...pageQuery, ...bookmarkQuery })

export const Orders = Type.Object({ orders: Type.Array(Order), next_cursor: NextCursor })
export const Fills = Type.Object({ fills: Type.Array(Fill), next_cursor: NextCursor })

/** Schemas for placing and cancelling one order. */
import Type, { type Static } from 'typebox'
import { MAX_BRACKET } from '../../domain/orders/brackets.ts'
import { ORDER_TYPES, TIMES_IN_FORCE } from '../../domain/orders/order.ts'
import { BUILDER_PATTERN } from '../../domain/orders/order-flags.ts'
import { Balance } from '../accounts/schema.ts'
import { Fill } from '../fills/schema.ts'
import { expectedProtectionFields } from '../order-book/schema.ts'
import { ClientOrderId, Order } from '../orders/schema.ts'
import {
  decimalInput,
  documentedAs,
  expects,
  marketInput,
  maybeAmountOf,
  named,
  namedInput,
  ReadAfter,
  Side,
  wholeInput,
} from '../wire/schema.ts'
import { SIGNED_ORDER } from './signing-example.ts'

const orderTypeField = Type.String({
  ...documentedAs(ORDER_TYPES),
  description:
    `One of ${ORDER_TYPES.join(', ')}. An order of a conditional type waits until the mark price crosses its trigger, then enters ` +
    'the next batch as MARKET or LIMIT. Take-profit and stop-loss types are always reduce-only.',
  examples: ['LIMIT', 'MARKET'],
})

const USE_ESTIMATE = 'Request the quantity from POST /v0/orders/estimate, sign it and send it as `quantity`.'

/** Hints for fields that belong to another endpoint. */
const HINTS = {
  usd_amount: USE_ESTIMATE,
  sizing_intent: USE_ESTIMATE,
  sizing_value: USE_ESTIMATE,
  margin_fraction: USE_ESTIMATE,
} as const

/** Fields that the signature does not cover; only the exchange stores them. */
export const flagFields = {
  time_in_force: Type.Optional(
    Type.String({
      ...documentedAs(TIMES_IN_FORCE),
      description:
        'gtc (default): the order stays until it is filled, cancelled or expired. ioc, only for LIMIT: the order takes part in exactly one ' +
        'auction, the first that runs with its account, and waits at most 2 s for it; its remainder ends with the reason IOC_REMAINDER. ' +
        'fok is rejected. Not signed.',
    }),
  ),
  post_only: Type.Optional(
    Type.Boolean({
      description:
        'Only for LIMIT with gtc. True: the order is rejected with WOULD_TAKE if it crosses an earlier limit order, one of your own included; ' +
        'accepted, it pays the maker rate in every fill. Not signed.',
    }),
  ),
  bracket_id: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_BRACKET,
      ...expects(`a whole number from 1 to ${MAX_BRACKET}`),
      description:
        'Your number of a bracket in this market: one entry, placed first, one take-profit and one stop-loss order of the other side. Without an ' +
        'entry, the exits of a position that you have. The exits wait until the entry has matched, and end if it ends unfilled. An exit that ' +
        'triggers ends the rest of the entry and of the other exit in the book; an exit that has filled ends the other. Not signed.',
    }),
  ),
}

/** The label of a builder, in orders and in the ledger. */
export const Builder = Type.String({
  pattern: BUILDER_PATTERN,
  ...expects('1 to 32 lower-case letters, digits and hyphens'),
  description:
    'Label of the program that has built the order: 1 to 32 lower-case letters, digits and hyphens. Public in the sums of `GET /v0/builders`, and ' +
    'free of charge. Not signed, and without effect on the order.',
  examples: ['my-terminal'],
})

const placement = {
  market_id: marketInput('Number of the market.'),
  side: Side,
  order_type: orderTypeField,
  price: Type.Optional(
    decimalInput('Limit price, a multiple of the tick size. Omit it or send 0 for market orders.'),
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
  expiration_seconds: Type.Optional(
    wholeInput('Unix seconds after which the order expires; 0 (default) for no expiration.'),
  ),
  trigger_price: Type.Optional(decimalInput('Required for conditional types, a multiple of the tick size.')),
  reduce_only: Type.Optional(Type.Boolean({ description: 'Whether the order may only shrink a position.' })),
  salt: Type.String({
    pattern: '^\\d{1,20}$',
    ...expects('a string of digits, a whole number below 2^53'),
    description: 'Decimal string of the signed salt, below 2^53.',
  }),
  client_order_id: Type.Optional(ClientOrderId),
  ...flagFields,
  builder: Type.Optional(Builder),
  signature: Type.String({ description: 'Hex of r, s, v and the suffix 01.' }),
  signature_type: Type.Optional(Type.Integer({ description: 'Send 1.' })),
}

export const PlaceOrderBody = namedInput('PlaceOrderBody', placement, {
  'x-hints': HINTS,
  examples: [SIGNED_ORDER],
})
export type PlaceOrderBody = Static<typeof PlaceOrderBody>

const {
  price: _price,
  trigger_price: _trigger,
  time_in_force: _timeInForce,
  post_only: _postOnly,
  bracket_id: _bracket,
  ...closing
} = placement

/** Signed reduce-only market order of a close. The two fields that state type and reduce-only are optional. */
export const ClosePositionBody = namedInput('ClosePositionBody', {
  ...closing,
  order_type: Type.Optional(
    Type.String({ ...documentedAs(['MARKET']), description: 'MARKET, or left out.' }),
  ),
  reduce_only: Type.Optional(
    Type.Boolean({ description: 'true, or left out. The signature covers the reduce-only bit.' }),
  ),
})
export type ClosePositionBody = Static<typeof ClosePositionBody>

export const PlaceOrderAnswer = named('PlaceOrderAnswer', {
  order: Order,
  fills: Type.Array(Fill, {
    description: 'Empty for a new order: fills come from later batches. For a duplicate, the fills so far.',
  }),
  is_duplicate: Type.Boolean({
    description: 'Whether the same signed order was accepted before; `order` is then that order.',
  }),
  ...expectedProtectionFields,
  balance: Balance,
  read_after: ReadAfter,
})
export type PlaceOrderAnswer = Static<typeof PlaceOrderAnswer>

export const ClosePositionAnswer = named('ClosePositionAnswer', {
  ...PlaceOrderAnswer.properties,
  ...maybeAmountOf(
    'position_quantity',
    'Quantity of the position when the order was accepted or repeated, fills included that are not settled yet. ' +
      'Null for a repetition long after the order has ended.',
  ),
  ...maybeAmountOf(
    'closing_quantity',
    'Most that the order can still close of that position: the unmatched signed quantity, or the position if it is smaller.',
  ),
  ...maybeAmountOf(
    'staying_quantity',
    'Least that stays of that position after this order. Above 0 if the signed quantity was below the position.',
  ),
})
export type ClosePositionAnswer = Static<typeof ClosePositionAnswer>

export const cancelReason = Type.String({
  maxLength: 200,
  ...expects('a text of at most 200 characters'),
  description: 'At most 200 characters.',
})
export const CANCEL_HINTS = {
  cancelSignature: 'Cancels need no signature of their own any more: leave it out.',
} as const
export const CancelBody = namedInput(
  'CancelBody',
  { reason: Type.Optional(cancelReason) },
  { 'x-hints': CANCEL_HINTS },
)
export type CancelBody = Static<typeof CancelBody>

export const CancelAnswer = named('CancelAnswer', {
  cancelled: Type.Boolean({
    description:
      'True if the order is cancelled, or will be once its batch has settled without filling it. ' +
      'False if it has filled or expired.',
  }),
  is_duplicate: Type.Boolean({ description: 'Whether the order was cancelled before.' }),
  order: Order,
  read_after: ReadAfter,
})
export type CancelAnswer = Static<typeof CancelAnswer>

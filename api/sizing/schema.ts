/** Sizing helpers: sizing intents, the maximum quantity, and the estimated result of an order. */
import Type, { type Static } from 'typebox'
import { ORDER_TYPES } from '../../domain/orders/order.ts'
import { expectedProtectionFields } from '../order-book/schema.ts'
import { flagFields } from '../order-entry/schema.ts'
import { PriceBand, reservationFields } from '../orders/reservation-schema.ts'
import {
  amountOf,
  decimalInput,
  marketInput,
  maybeAmountOf,
  named,
  namedInput,
  nullable,
  nullableObject,
  Side,
  wholeInput,
  words,
} from '../wire/schema.ts'

export const SIZING_INTENTS = ['notional', 'units', 'available_margin', 'max', 'reduce_percentage'] as const

const typeInput = words(ORDER_TYPES, 'Type of the order.')

export const EstimateBody = namedInput(
  'EstimateBody',
  {
    market_id: marketInput('Market.'),
    side: Side,
    order_type: typeInput,
    sizing_intent: words(
      SIZING_INTENTS,
      'notional: size in USDM. units: size in units. available_margin: percent of the available balance. ' +
        'max: the largest order. reduce_percentage: percent of the position.',
    ),
    size: Type.Optional(
      decimalInput('Size in the unit of the intent; 0 (default) for the maximum only. Omit it for max.'),
    ),
    price: Type.Optional(decimalInput('Limit price; required for limit types.')),
    trigger_price: Type.Optional(decimalInput('Required for conditional types.')),
    leverage: Type.Optional(wholeInput('A positive whole number; default 1.')),
    ...flagFields,
    reduce_only: Type.Optional(
      Type.Boolean({ description: 'Default true for reduce_percentage, take-profit and stop-loss types.' }),
    ),
  },
  {
    examples: [
      {
        market_id: 1,
        side: 'LONG',
        order_type: 'MARKET',
        sizing_intent: 'notional',
        size: 1000,
        leverage: 5,
      },
      { market_id: 1, side: 'LONG', order_type: 'LIMIT', price: 62000, sizing_intent: 'max', leverage: 10 },
      { market_id: 1, side: 'SHORT', order_type: 'MARKET', sizing_intent: 'reduce_percentage', size: 25 },
    ],
  },
)
export type EstimateBody = Static<typeof EstimateBody>

const refusalFields = {
  code: Type.String({ description: 'Error code of a placement, or POSITION_SIZE.' }),
  message: Type.String(),
  field: Type.String(),
  expected: Type.String(),
  received: Type.String(),
  nearest_valid: nullable(Type.String({ description: 'A value of `field` that passes this check.' })),
  nearest_valid_leverage: nullable(
    Type.Integer({
      description: 'For MARGIN_REQUIREMENT: the highest leverage that passes at the same price.',
    }),
  ),
}

const Maximum = Type.Object({
  ...amountOf('quantity', 'The largest quantity that a placement accepts now; 0 if it accepts none.'),
  ...amountOf('notional', 'Notional of that quantity at the estimated price.'),
  ...amountOf('reserved_margin', 'Reservation of that quantity: margin and fee allowance.'),
  binding: Type.Object(refusalFields, {
    description: 'Why one step more is rejected; if the quantity is 0, why the smallest order is rejected.',
  }),
})

const LeverageEffect = Type.Object({
  leverage: Type.Integer(),
  ...amountOf('quantity', 'The maximum at this leverage.'),
  binding: Type.String({ description: 'Error code that one step more would have.' }),
})

const PositionAfter = Type.Object({
  ...amountOf('size', 'Signed size; positive is long.'),
  ...maybeAmountOf('entry_price', 'Average entry price; null if flat.'),
  ...amountOf('margin', 'Collateral of the position.'),
  leverage: Type.Integer({ description: 'Leverage of the last opening order.' }),
  ...maybeAmountOf('effective_leverage', 'Notional divided by equity, at the oracle price; null if flat.'),
  ...maybeAmountOf('margin_ratio', 'Equity divided by notional, at the oracle price; null if flat.'),
  ...maybeAmountOf(
    'liquidation_price',
    'Oracle price at which liquidation begins; null if no price liquidates the position.',
  ),
})

const Estimated = Type.Object({
  ...amountOf('quantity', 'Quantity to sign: a multiple of the step size, rounded down.'),
  accepted: Type.Boolean({ description: 'Whether a placement of this quantity would be accepted now.' }),
  refusal: nullableObject(
    Type.Object(refusalFields),
    'Why the placement would be rejected; null if it would be accepted.',
  ),
  ...maybeAmountOf('price', 'Estimated clearing price.'),
  price_source: nullable(
    Type.String({
      description:
        'batch: clearing price with the current book. limit, trigger: the price at which the order would rest or wait. ' +
        'oracle: the book has no order to match.',
    }),
  ),
  ...maybeAmountOf('notional', 'Quantity times that price.'),
  ...amountOf('fillable_quantity', 'Quantity that the current book would fill in the next batch.'),
  reservation: nullableObject(
    Type.Object(reservationFields),
    'Reservation of the order, even if the available balance does not cover it.',
  ),
  ...maybeAmountOf('fee', 'Fee if the whole quantity fills at that price.'),
  ...maybeAmountOf('realized_pnl', 'Profit or loss of the closing quantity before fees.'),
  position: nullableObject(PositionAfter, 'The position if the whole quantity fills at that price.'),
})

export const Estimate = named('Estimate', {
  market_id: Type.Integer(),
  symbol: Type.String(),
  side: Side,
  order_type: typeInput,
  leverage: Type.Integer(),
  reduce_only: Type.Boolean(),
  sizing_intent: words(SIZING_INTENTS, 'As requested.'),
  ...amountOf('size', 'As requested.'),
  ...amountOf('available', 'Balance available for margin and fees.'),
  ...expectedProtectionFields,
  price_band: PriceBand,
  max_leverage: Type.Integer(),
  maximum: Maximum,
  by_leverage: Type.Array(LeverageEffect, { description: 'The maximum at other leverages.' }),
  estimate: nullableObject(Estimated, 'Null if only the maximum was requested.'),
})
export type Estimate = Static<typeof Estimate>

export const QuantityBody = namedInput(
  'QuantityBody',
  {
    market_id: marketInput('Market.'),
    side: Side,
    usd_amount: decimalInput('Budget in USDM: upper bound of the notional.'),
    order_type: Type.Optional(words(['MARKET', 'LIMIT'], 'Default MARKET, or LIMIT if `price` is sent.')),
    price: Type.Optional(decimalInput('Limit price.')),
  },
  { examples: [{ market_id: 1, side: 'LONG', usd_amount: 1000 }] },
)
export type QuantityBody = Static<typeof QuantityBody>

export const Quantity = named('Quantity', {
  market_id: Type.Integer(),
  symbol: Type.String(),
  side: Side,
  order_type: words(['MARKET', 'LIMIT'], 'As requested, or the default.'),
  ...amountOf('usd_amount', 'As requested.'),
  ...amountOf('quantity', 'The largest multiple of the step size that the budget buys.'),
  ...amountOf(
    'estimated_clearing_price',
    'Clearing price with the current book, or the limit price if the order would rest.',
  ),
  price_source: Type.String({ description: 'batch, limit or oracle.' }),
  ...amountOf('notional', 'Quantity times that price.'),
  ...amountOf('fillable_quantity', 'Quantity that the current book would fill in the next batch.'),
  ...amountOf('fee', 'Fee if the whole quantity fills at that price.'),
})
export type Quantity = Static<typeof Quantity>

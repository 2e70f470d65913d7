/** From what a trader has in mind to a quantity, and what it would come to. */
import Type, { type Static } from 'typebox'
import { ORDER_TYPES } from '../../domain/orders/order.ts'
import { PriceBand, reservationFields } from '../orders/reservation-schema.ts'
import {
  amountOf,
  closed,
  decimalInput,
  marketInput,
  maybeAmountOf,
  nullable,
  nullableObject,
  Side,
  wholeInput,
  words,
} from '../wire/schema.ts'

export const SIZING_INTENTS = ['notional', 'units', 'available_margin', 'max', 'reduce_percentage'] as const

const typeInput = words(ORDER_TYPES, 'Type of the order.')

export const EstimateBody = closed(
  {
    market_id: marketInput('Market.'),
    side: Side,
    order_type: typeInput,
    sizing_intent: words(
      SIZING_INTENTS,
      'notional: size in USDM. units: size in units. available_margin: percent of what is available. ' +
        'max: the largest order. reduce_percentage: percent of the position.',
    ),
    size: Type.Optional(
      decimalInput('What the intent says; 0 (default) for the maximum alone. Leave it out for max.'),
    ),
    price: Type.Optional(decimalInput('Limit price: required for limit types.')),
    trigger_price: Type.Optional(decimalInput('Required for conditional types.')),
    leverage: Type.Optional(wholeInput('A positive whole number; default 1.')),
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
  code: Type.String({ description: 'As in the errors of a placement, or POSITION_SIZE.' }),
  message: Type.String(),
  field: Type.String(),
  expected: Type.String(),
  received: Type.String(),
  nearest_valid: nullable(Type.String()),
}

const Maximum = Type.Object({
  ...amountOf('quantity', 'The largest quantity that a placement accepts now; 0 if none.'),
  ...amountOf('notional', 'Its notional at the estimated price.'),
  ...amountOf('reserved_margin', 'What it would hold back: margin and fee allowance.'),
  binding: Type.Object(refusalFields, {
    description: 'Why one step more is refused; with quantity 0, why the smallest order is.',
  }),
})

const LeverageEffect = Type.Object({
  leverage: Type.Integer(),
  ...amountOf('quantity', 'The maximum at this leverage.'),
  binding: Type.String({ description: 'Code of what ends it.' }),
})

const PositionAfter = Type.Object({
  ...amountOf('size', 'Signed: long positive.'),
  ...maybeAmountOf('entry_price', 'Average price of what is open; null if flat.'),
  ...amountOf('margin', 'Collateral of the position.'),
  leverage: Type.Integer({ description: 'Of the last opening order.' }),
  ...maybeAmountOf('effective_leverage', 'Notional divided by equity, at the oracle price; null if flat.'),
  ...maybeAmountOf('margin_ratio', 'Equity divided by notional, at the oracle price; null if flat.'),
  ...maybeAmountOf('liquidation_price', 'Oracle price at which liquidation begins; null where none does.'),
})

const Estimated = Type.Object({
  ...amountOf('quantity', 'On the grid, rounded down. Sign this.'),
  accepted: Type.Boolean({ description: 'Whether a placement of it would be accepted now.' }),
  refusal: nullableObject(Type.Object(refusalFields), 'Why not; null if it would be.'),
  ...maybeAmountOf('price', 'Estimated clearing price.'),
  price_source: nullable(
    Type.String({
      description:
        'batch: the book as it rests now would clear there. limit, trigger: where the order rests or waits. ' +
        'oracle: nobody is there.',
    }),
  ),
  ...maybeAmountOf('notional', 'Quantity at that price.'),
  ...amountOf('fillable_quantity', 'What the book would fill in the next batch.'),
  reservation: nullableObject(
    Type.Object(reservationFields),
    'What it would hold back, whether or not the account can afford it.',
  ),
  ...maybeAmountOf('fee', 'Fee if all of it fills at that price.'),
  ...maybeAmountOf('realized_pnl', 'Profit of what closes, fee not deducted.'),
  position: nullableObject(PositionAfter, 'The position if all of it fills at that price.'),
})

export const Estimate = Type.Object({
  market_id: Type.Integer(),
  symbol: Type.String(),
  side: Side,
  order_type: typeInput,
  leverage: Type.Integer(),
  reduce_only: Type.Boolean(),
  sizing_intent: words(SIZING_INTENTS, 'As asked.'),
  ...amountOf('size', 'As asked.'),
  ...amountOf('available', 'What the account has for margin and fees.'),
  price_band: PriceBand,
  max_leverage: Type.Integer(),
  maximum: Maximum,
  by_leverage: Type.Array(LeverageEffect, { description: 'The maximum at other leverages.' }),
  estimate: nullableObject(Estimated, 'Null where only the maximum was asked for.'),
})
export type Estimate = Static<typeof Estimate>

export const QuantityBody = closed(
  {
    market_id: marketInput('Market.'),
    side: Side,
    usd_amount: decimalInput('Budget in USDM: the notional is at most that.'),
    order_type: Type.Optional(words(['MARKET', 'LIMIT'], 'Default MARKET, or LIMIT where there is a price.')),
    price: Type.Optional(decimalInput('Limit price.')),
  },
  { examples: [{ market_id: 1, side: 'LONG', usd_amount: 1000 }] },
)
export type QuantityBody = Static<typeof QuantityBody>

export const Quantity = Type.Object({
  market_id: Type.Integer(),
  symbol: Type.String(),
  side: Side,
  order_type: words(['MARKET', 'LIMIT'], 'As asked, or as it follows.'),
  ...amountOf('usd_amount', 'As asked.'),
  ...amountOf('quantity', 'The most that the budget buys, on the grid.'),
  ...amountOf(
    'estimated_clearing_price',
    'The batch over the book as it rests now; the limit where it would rest.',
  ),
  price_source: Type.String({ description: 'batch, limit or oracle.' }),
  ...amountOf('notional', 'Quantity at that price.'),
  ...amountOf('fillable_quantity', 'What the book would fill in the next batch.'),
  ...amountOf('fee', 'Fee if all of it fills at that price.'),
})
export type Quantity = Static<typeof Quantity>

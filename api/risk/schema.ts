/** The risk of a market: open interest, backstop, deleveragings and deficits. */
import Type, { type Static } from 'typebox'
import { amountOf, maybeAmountOf, named, nullable, nullableObject, Time } from '../wire/schema.ts'

const Backstop = Type.Object({
  ...amountOf('capacity', 'Highest notional that the backstop may have here after an inheritance.'),
  ...maybeAmountOf('used', 'Notional of its position at the oracle price.'),
  ...maybeAmountOf(
    'available',
    'What is left of the capacity; 0 if the price has moved the position beyond it.',
  ),
  ...amountOf('size', 'Its signed position; positive is long.'),
  ...amountOf('margin', 'Margin of its position.'),
  ...maybeAmountOf(
    'margin_ratio',
    'Equity of its position divided by notional at the oracle price; null if flat.',
  ),
  ...amountOf(
    'free_balance',
    'Its free balance, for all markets: it adds margin to what it inherits, up to the initial requirement.',
  ),
})

export const MarketRisk = named('MarketRisk', {
  market_id: Type.Integer(),
  symbol: Type.String(),
  ...maybeAmountOf(
    'oracle_price',
    'Oracle price at which notionals are computed; the final price once the market has ended.',
  ),
  ...amountOf(
    'open_interest',
    'Sum of all long positions that are settled on the chain; the short positions sum to the same.',
  ),
  ...maybeAmountOf('open_interest_notional', 'The same at the oracle price.'),
  backstop: nullableObject(
    Backstop,
    'The account that inherits positions which the book did not take in time; null if there is none.',
  ),
  inheritances: Type.Object({
    count: Type.Integer({ description: 'Positions that the backstop has inherited.' }),
    failed: Type.Integer({
      description: 'Attempts without effect, because its capacity or balance did not suffice.',
    }),
    ...amountOf('quantity', 'Quantity that it has inherited.'),
  }),
  deleveragings: Type.Object({
    count: Type.Integer({
      description:
        'Positions that were closed against profitable positions of the other side; once per transaction.',
    }),
    ...amountOf('quantity', 'Quantity that was closed.'),
    ...amountOf('notional', 'Its value at the bankruptcy prices.'),
    ...amountOf('payouts', 'Margin and profit that the other side received.'),
  }),
  deficits: Type.Object({
    count: Type.Integer({
      description: 'Accounts whose position was worth less than zero at the final price.',
    }),
    ...amountOf('reported', 'Sum of what they lacked.'),
    ...amountOf('covered', 'Sum of what was paid to cover it.'),
  }),
  running_liquidations: Type.Integer({ description: 'Positions whose liquidation has begun and not ended.' }),
  liquidation_paused_until: nullable(
    Time(
      'After a pause of the bank: until then no position with equity is liquidated. Null if there is no such time ahead.',
    ),
  ),
})
export type MarketRisk = Static<typeof MarketRisk>

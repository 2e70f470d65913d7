/** Open positions of an account. */
import Type, { type Static } from 'typebox'
import {
  amountOf,
  bookmarkQuery,
  closed,
  documentedAs,
  maybeAmountOf,
  named,
  nullable,
  PositiveInteger,
  Time,
} from '../wire/schema.ts'

export const Position = named('Position', {
  user_id: Type.Integer(),
  market_id: Type.Integer(),
  symbol: Type.String(),
  side: nullable(
    Type.String({ ...documentedAs(['LONG', 'SHORT', null]), description: 'LONG or SHORT; null if flat.' }),
  ),
  ...amountOf('size', 'Signed size settled on the chain; positive is long.'),
  ...amountOf('pending_size', 'Signed size that is matched and not yet settled.'),
  ...maybeAmountOf('entry_price', 'Average entry price, rounded down at 18 decimals.'),
  ...amountOf('entry_notional', 'Price paid for the open size.'),
  ...amountOf('margin', 'Collateral of this position.'),
  leverage: Type.Integer(),
  ...maybeAmountOf(
    'mark_price',
    'Mark price; the final price once the market has ended, as the oracle price.',
  ),
  ...maybeAmountOf('oracle_price', 'Oracle price.'),
  ...maybeAmountOf('unrealized_pnl', 'Unrealized profit or loss at the mark price.'),
  ...maybeAmountOf('notional', 'Notional at the oracle price.'),
  ...maybeAmountOf(
    'margin_ratio',
    'Equity divided by notional at the oracle price; liquidation below the maintenance requirement + 0.005.',
  ),
  ...maybeAmountOf(
    'liquidation_price',
    'Oracle price at which liquidation begins; null if no price liquidates the position, and once the market is closed.',
  ),
  ...maybeAmountOf(
    'bankruptcy_price',
    'Clearing price at which nothing of the margin is left, in whole ticks: a forced order fills at it or better. Null if flat, or if no ' +
      'price uses up the margin.',
  ),
  adl_rank: nullable(
    Type.Integer({
      minimum: 1,
      maximum: 5,
      description:
        'Which fifth of the profitable positions of its side it is in, by (profit / entry notional) x (notional / equity): 5 is deleveraged ' +
        'first, 1 last. Computed every ten seconds. Null without profit, and while it is not known.',
    }),
  ),
  ...amountOf('realized_pnl', 'Profit or loss realized in this market so far.'),
  ...amountOf('fees', 'Fees paid in this market so far.'),
  updated_at: Time('Time of the last change.'),
})
export type Position = Static<typeof Position>

export const PositionsQuery = closed({
  market_id: Type.Optional(PositiveInteger('Only the position in this market.')),
  ...bookmarkQuery,
})
export const Positions = named('Positions', { positions: Type.Array(Position) })

/** Markets: their specification, mode and last prices. */
import Type, { type Static } from 'typebox'
import {
  amountOf,
  bookmarkQuery,
  closed,
  countInput,
  maybeAmountOf,
  named,
  nullable,
  nullableObject,
  PositiveInteger,
  Time,
  words,
} from '../wire/schema.ts'
import { endingFields } from './ending.ts'
import { Fees } from './fees.ts'
import { fundingFields } from './funding.ts'
import { oracleFields } from './oracle.ts'
import { sessionFields } from './session.ts'
import { UPCOMING } from './upcoming-change.ts'

export const MARKET_KINDS = ['perpetual', 'future', 'binary_future'] as const
export const MARKET_MODES = ['open', 'cancel_only', 'halted', 'settling', 'settled'] as const

export const Market = named('Market', {
  market_id: Type.Integer(),
  symbol: Type.String(),
  type: words(MARKET_KINDS, 'perpetual, future (numeric outcome) or binary_future (YES or NO).'),
  trading_enabled: Type.Boolean({
    description: 'Whether the market accepts placements; true if and only if `mode` is `open`.',
  }),
  mode: words(MARKET_MODES, 'open, cancel_only, halted, settling or settled.'),
  ...endingFields,
  ...sessionFields,
  chain_id: Type.Integer({ description: 'Chain id of the signing domain.' }),
  trader_address: Type.String({
    description: "The market's contract: verifying contract of the signing domain.",
  }),
  ...amountOf('tick_size', 'Price increment.'),
  ...amountOf('step_size', 'Quantity increment.'),
  ...amountOf('min_order_size', 'Minimum quantity, except for exact reduce-only full closes.'),
  ...amountOf('max_order_size', 'Maximum quantity.'),
  ...amountOf('min_order_price', 'Minimum price.'),
  max_leverage: Type.Integer(),
  ...amountOf('initial_margin_requirement', 'Fraction of notional at the oracle price.'),
  ...amountOf('maintenance_margin_requirement', 'Fraction of notional at the oracle price.'),
  ...amountOf('mtb_long', 'Price band above the oracle price, as a fraction of it.'),
  ...amountOf('mtb_short', 'Price band below the oracle price, as a fraction of it.'),
  price_band: nullableObject(
    Type.Object({
      ...amountOf('lowest', 'Lowest price at which a batch could clear now.'),
      ...amountOf('highest', 'Highest price at which a batch could clear now.'),
    }),
    'The price band around the last oracle price, in whole ticks; null before the first oracle price.',
  ),
  ...amountOf(
    'price_protection',
    'Width of the price protection of market orders in force: a fraction of the price; for binary_future a distance from it.',
  ),
  ...maybeAmountOf('next_price_protection', 'The announced width; null if none is announced.'),
  next_price_protection_at: nullable(
    Time('Time from which auctions apply the announced width; null if none is announced.'),
  ),
  ...amountOf(
    'maker_fee',
    'Rate that batches charge now: a fraction of notional; for binary_future the coefficient.',
  ),
  ...amountOf(
    'taker_fee',
    'Rate that batches charge now: a fraction of notional; for binary_future the coefficient.',
  ),
  fees: Fees,
  ...UPCOMING,
  ...maybeAmountOf('oracle_price', 'Last oracle price.'),
  oracle_price_at: nullable(Time('Observation time of the oracle price.')),
  ...oracleFields,
  ...maybeAmountOf('mark_price', 'Mark price.'),
  ...maybeAmountOf('last_price', 'Clearing price of the last batch.'),
  last_batch_id: nullable(Type.Integer()),
  ...fundingFields,
})
export type Market = Static<typeof Market>

export const MarketsQuery = closed({
  type: Type.Optional(words(MARKET_KINDS, 'Only markets of this type.')),
  mode: Type.Optional(words(MARKET_MODES, 'Only markets in this mode.')),
  symbol: Type.Optional(Type.String({ minLength: 1, description: 'Only the market with this symbol.' })),
  limit: Type.Optional(countInput(1000, 100, 'Maximum number of markets.')),
  ...bookmarkQuery,
})
export const MarketIdParams = closed({ market_id: PositiveInteger('Number of the market.') })

/** The history of a market's funding rates. */
import Type, { type Static } from 'typebox'
import {
  amountOf,
  bookmarkQuery,
  closed,
  NextCursor,
  named,
  pageQuery,
  Time,
  timeInput,
} from '../wire/schema.ts'

export const FundingRate = named('FundingRate', {
  market_id: Type.Integer(),
  symbol: Type.String(),
  action_id: Type.Integer({ description: "The contract's id of the update." }),
  effective_at: Time('Time from which the rate applies.'),
  valid_until: Time('Time at which it ends, unless a later update replaces it before; exclusive.'),
  ...amountOf(
    'funding_rate',
    'Fraction of the oracle price that longs pay per hour; negative if shorts pay.',
  ),
  ...amountOf('rate_per_step', 'USDM that a long pays per quantity step and hour, exact.'),
  ...amountOf(
    'funding_index',
    'USDM that a long has paid per quantity step since listing, as of `effective_at`.',
  ),
  ...amountOf('oracle_price', 'Oracle price of the update.'),
  oracle_price_at: Time('Observation time of the oracle price.'),
  tx_hash: Type.String(),
})
export type FundingRate = Static<typeof FundingRate>

export const FundingRates = named('FundingRates', {
  funding_rates: Type.Array(FundingRate),
  next_cursor: NextCursor,
})

export const FundingRatesQuery = closed({
  from: Type.Optional(timeInput('Only rates that apply from this time on or later.')),
  to: Type.Optional(timeInput('Only rates that apply from a time before this one.')),
  ...pageQuery,
  ...bookmarkQuery,
})

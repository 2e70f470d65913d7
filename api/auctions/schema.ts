/** The auctions of a market: what decided the price of each batch. */
import Type, { type Static } from 'typebox'
import {
  amountOf,
  bookmarkQuery,
  closed,
  maybeWords,
  NextCursor,
  named,
  nullable,
  PositiveInteger,
  pageQuery,
  rangeQuery,
  Time,
  words,
} from '../wire/schema.ts'

export const PART_STATUSES = ['MATCHED', 'SUBMITTED', 'MINED', 'CONFIRMED', 'RETRYING', 'VOIDED'] as const
export const AUCTION_STATUSES = ['SETTLING', 'SETTLED', 'VOIDED'] as const

const RULES =
  'The rule that decided the price among the prices with the largest volume. volume: only one has it. surplus: only one of them has the ' +
  'smallest surplus. Otherwise an interval is left: buy_pressure and sell_pressure choose an end because one side has a surplus on all of it, ' +
  'limit the only end at which limit orders alone carry the volume, oracle the price nearest to the oracle price.'

export const Auction = named('Auction', {
  market_id: Type.Integer(),
  symbol: Type.String(),
  batch_id: Type.Integer(),
  as_of: Time('Time of the auction.'),
  status: words(
    AUCTION_STATUSES,
    'SETTLED while all parts of the batch are mined; VOIDED if at least one of them will not settle.',
  ),
  ...amountOf('price', 'Clearing price.'),
  rule: Type.String({ description: RULES }),
  rule_version: nullable(
    Type.Integer({
      description: 'Version of the clearing rules; null for a batch from before it was recorded.',
    }),
  ),
  ...amountOf('volume', 'Matched quantity.'),
  ...amountOf('demand', 'Quantity of all buys that were eligible at the price.'),
  ...amountOf('supply', 'Quantity of all sells that were eligible at the price.'),
  ...amountOf('surplus', 'Demand less supply: above 0 if buys were left over, below 0 if sells were.'),
  rationed_side: maybeWords(
    ['LONG', 'SHORT'],
    'The side whose eligible orders did not fill whole; null if both did.',
  ),
  ...amountOf(
    'fill_ratio',
    'Share of the rationed side that was matched, rounded down at 18 decimals; 1 if both sides filled whole.',
  ),
  transactions: Type.Array(
    Type.Object({
      part: Type.Integer({ description: 'Each part of the batch is one transaction.' }),
      status: words(
        PART_STATUSES,
        'MATCHED, SUBMITTED, MINED, CONFIRMED; RETRYING while its block has left the chain; VOIDED if it will not settle.',
      ),
      tx_hash: nullable(
        Type.String({ description: 'The last transaction that was sent or mined; null before.' }),
      ),
    }),
    { description: 'By part.' },
  ),
  price_band: Type.Object(
    {
      ...amountOf('lowest', 'Lowest price at which the batch could clear.'),
      ...amountOf('highest', 'Highest price at which the batch could clear.'),
    },
    { description: 'The price band around the oracle price.' },
  ),
  ...amountOf('oracle_price', 'Oracle price of the auction.'),
  oracle_price_at: Time('Observation time of the oracle price.'),
})
export type Auction = Static<typeof Auction>

export const AuctionsQuery = closed({
  market_id: PositiveInteger('Number of the market.'),
  ...rangeQuery('auctions'),
  ...pageQuery,
  ...bookmarkQuery,
})
export const Auctions = named('Auctions', { auctions: Type.Array(Auction), next_cursor: NextCursor })

/** Candles of a market. */
import Type, { type Static } from 'typebox'
import { INTERVALS, type Interval } from '../../domain/market-data/interval.ts'
import {
  amountOf,
  bookmarkQuery,
  closed,
  NextCursor,
  named,
  pageQuery,
  Time,
  timeInput,
  words,
} from '../wire/schema.ts'

export const INTERVAL_NAMES = Object.keys(INTERVALS) as Interval[]
export const PRICE_TYPES = ['last', 'mark', 'oracle'] as const

export const Candle = named('Candle', {
  start: Time('Start of the interval; it belongs to the candle, the start of the next one does not.'),
  ...amountOf('open', 'First price.'),
  ...amountOf('high', 'Highest price.'),
  ...amountOf('low', 'Lowest price.'),
  ...amountOf('close', 'Last price.'),
  ...amountOf('volume', 'Matched quantity, counted once for both sides; 0 for mark and oracle prices.'),
  ...amountOf('notional', 'Sum of price times matched quantity; 0 for mark and oracle prices.'),
  trades: Type.Integer({
    description:
      'Auctions that matched: each executes all of its orders at one price, as one trade. 0 for mark and oracle prices.',
  }),
  fills: Type.Integer({
    description:
      'Fills of both sides in these auctions: one per order and part. 0 for mark and oracle prices.',
  }),
  is_gap: Type.Boolean({
    description: 'No price in this interval: open, high, low and close repeat the close before it.',
  }),
  is_final: Type.Boolean({
    description:
      'The candle will not change: its interval is over, and each of its batches is confirmed on the chain or voided.',
  }),
})
export type Candle = Static<typeof Candle>

export const Candles = named('Candles', {
  market_id: Type.Integer(),
  symbol: Type.String(),
  interval: words(INTERVAL_NAMES, 'Length of each candle.'),
  price_type: words(PRICE_TYPES, 'Which price the candles show.'),
  candles: Type.Array(Candle, { description: 'Newest first, without omissions.' }),
  next_cursor: NextCursor,
})

export const CandlesQuery = closed({
  interval: Type.Optional(
    words(INTERVAL_NAMES, 'Length of each candle, in UTC; weeks start on Monday. Default 1m.'),
  ),
  price_type: Type.Optional(
    words(PRICE_TYPES, 'last: clearing prices of auctions (default); mark or oracle: published prices.'),
  ),
  from: Type.Optional(timeInput('Only candles that start at this time or later.')),
  to: Type.Optional(timeInput('Only candles that start before this time. Default: now.')),
  ...pageQuery,
  ...bookmarkQuery,
})

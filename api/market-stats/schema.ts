/** Statistics and tickers of markets. */
import Type, { type Static } from 'typebox'
import { MARKET_KINDS, MARKET_MODES } from '../markets/schema.ts'
import {
  amountOf,
  bookmarkQuery,
  closed,
  maybeAmountOf,
  named,
  nullable,
  Time,
  words,
} from '../wire/schema.ts'

const dayFields = {
  market_id: Type.Integer(),
  symbol: Type.String(),
  type: words(MARKET_KINDS, 'perpetual, future (numeric outcome) or binary_future (YES or NO).'),
  mode: words(MARKET_MODES, 'open, cancel_only, halted, settling or settled.'),
  since: Time('Start of the figures of 24 hours: 24 hours ago, rounded down to the minute.'),
  ...maybeAmountOf(
    'last_price',
    'Clearing price of the last batch that was not voided; null before the first.',
  ),
  ...maybeAmountOf(
    'open_24h',
    'Price at `since`: of the last batch before it, or else of the first one after it. Null without a batch.',
  ),
  ...maybeAmountOf('high_24h', 'Highest clearing price in 24 hours; null without a batch.'),
  ...maybeAmountOf('low_24h', 'Lowest clearing price in 24 hours; null without a batch.'),
  ...maybeAmountOf('change_24h', '`last_price` less `open_24h`.'),
  ...maybeAmountOf(
    'change_fraction_24h',
    '`change_24h` as a fraction of `open_24h`, rounded down at 18 decimals.',
  ),
  ...amountOf('volume_24h', 'Matched quantity in 24 hours, counted once for both sides.'),
  ...amountOf('notional_24h', 'Sum of price times matched quantity in 24 hours, in USDM.'),
  trades_24h: Type.Integer({ description: 'Auctions that matched in 24 hours.' }),
  fills_24h: Type.Integer({ description: 'Fills of both sides in 24 hours.' }),
  ...maybeAmountOf('mark_price', 'Mark price; the oracle price until there is one.'),
  ...maybeAmountOf('oracle_price', 'Last oracle price.'),
}

export const MarketStats = named('MarketStats', {
  ...dayFields,
  ...amountOf('open_interest', 'Sum of the long positions that are mined.'),
  ...maybeAmountOf('open_interest_notional', 'The same at the oracle price, in USDM; null without a price.'),
  ...maybeAmountOf('funding_rate', 'Rate in force, as in `funding` of the market; null while none is valid.'),
  ...maybeAmountOf('predicted_funding_rate', 'Rate of the next update, as in `funding` of the market.'),
  next_funding_at: nullable(Time('Time from which the next update is due, as in `funding` of the market.')),
})
export type MarketStats = Static<typeof MarketStats>

export const Ticker = named('Ticker', {
  ...dayFields,
  ...maybeAmountOf('bid_price', 'Best price of the buys that can execute; null without one.'),
  ...maybeAmountOf('bid_quantity', 'Their quantity at it.'),
  ...maybeAmountOf('ask_price', 'Best price of the sells that can execute; null without one.'),
  ...maybeAmountOf('ask_quantity', 'Their quantity at it.'),
})
export type Ticker = Static<typeof Ticker>

export const StatsQuery = closed(bookmarkQuery)

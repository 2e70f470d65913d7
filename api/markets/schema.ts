/** Markets, the order book and what belongs to no account. */
import Type, { type Static } from 'typebox'
import {
  amountOf,
  bookmarkQuery,
  closed,
  countInput,
  expects,
  maybeAmountOf,
  nullable,
  PositiveInteger,
  Side,
  Time,
  words,
} from '../wire/schema.ts'

export const MARKET_KINDS = ['perpetual', 'future', 'binary_future'] as const
export const MARKET_MODES = ['open', 'cancel_only', 'halted', 'settling', 'settled'] as const

export const Market = Type.Object({
  market_id: Type.Integer(),
  symbol: Type.String(),
  type: words(MARKET_KINDS, 'perpetual, future (numeric outcome) or binary_future (YES or NO).'),
  trading_enabled: Type.Boolean({ description: 'Whether placements are taken; the same as mode `open`.' }),
  mode: words(MARKET_MODES, 'open, cancel_only, halted, settling or settled.'),
  chain_id: Type.Integer({ description: 'Of the signing domain.' }),
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
  ...amountOf('mtb_long', 'Price band above the oracle price, a fraction of it.'),
  ...amountOf('mtb_short', 'Price band below the oracle price, a fraction of it.'),
  ...amountOf('maker_fee', 'Fraction of notional; for binary_future the coefficient.'),
  ...amountOf('taker_fee', 'Fraction of notional; for binary_future the coefficient.'),
  ...maybeAmountOf('oracle_price', 'Last oracle price.'),
  oracle_price_at: nullable(Time('When the oracle price was observed.')),
  ...maybeAmountOf('mark_price', 'Mark price.'),
  ...maybeAmountOf('last_price', 'Clearing price of the last batch.'),
  last_batch_id: nullable(Type.Integer()),
})
export type Market = Static<typeof Market>

export const MarketsQuery = closed({
  type: Type.Optional(words(MARKET_KINDS, 'Only this kind.')),
  limit: Type.Optional(countInput(1000, 100, 'Markets at most.')),
  ...bookmarkQuery,
})
export const MarketIdParams = closed({ market_id: PositiveInteger('Market.') })

/** Exactly these six fields. */
export const Level = closed({
  side: Side,
  ...amountOf('price', 'Price.'),
  ...amountOf('quantity', 'Total of the open orders at this price and side.'),
  order_count: Type.Integer(),
})
export type Level = Static<typeof Level>

const bookQuery = {
  depth: Type.Optional(countInput(1000, 1000, 'Levels per side.')),
  ...bookmarkQuery,
}
export const BookQuery = closed(bookQuery)
export const BookBySymbolQuery = closed({
  symbol: Type.String({ minLength: 1, ...expects('the symbol of a market') }),
  ...bookQuery,
})

export const Book = Type.Object({
  market_id: Type.Integer(),
  symbol: Type.String(),
  shard_seq: Type.String({ description: 'The book is as of this sequence of the market.' }),
  long_levels: Type.Array(Level, { description: 'Best (highest) first.' }),
  short_levels: Type.Array(Level, { description: 'Best (lowest) first.' }),
})
export const BookBySymbol = Type.Object({
  market_id: Type.Integer(),
  symbol: Type.String(),
  shard_seq: Type.String({ description: 'The book is as of this sequence of the market.' }),
  bids: Type.Array(Level, { description: 'Best (highest) first.' }),
  asks: Type.Array(Level, { description: 'Best (lowest) first.' }),
})

export const SharedContracts = Type.Object({
  addressCollateralToken: Type.String(),
  addressMarginBank: Type.String(),
  addressAccountManager: Type.String(),
  addressForwarder: Type.String(),
  chain_id: Type.Integer(),
})

export const ServerTime = Type.Object({
  time: Time('Time of this server.'),
  unix_ms: Type.Integer(),
  unix_seconds: Type.Integer(),
})

const MarketStatus = Type.Object({
  market_id: Type.Integer(),
  symbol: Type.String(),
  mode: words(MARKET_MODES, 'Mode of the market.'),
  oracle_age_ms: nullable(Type.Integer()),
  oracle_fresh: Type.Boolean(),
  last_batch_id: Type.Integer(),
  placements: Type.Boolean({ description: 'Whether a placement would be taken now.' }),
  read_model_lag: Type.Integer({ description: 'Log rows that are not in the read model yet.' }),
})
export const ServiceStatus = Type.Object({
  status: words(['ok', 'degraded'], 'degraded: placements are refused in some market.'),
  time: Time('Time of this server.'),
  chain: Type.Object({
    chain_id: Type.Integer(),
    block: nullable(Type.Integer()),
    seen_ms_ago: nullable(Type.Integer()),
    fresh: Type.Boolean(),
  }),
  markets: Type.Array(MarketStatus),
})

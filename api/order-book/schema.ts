/** The order book of a market, aggregated by price. */
import Type, { type Static } from 'typebox'
import {
  amountOf,
  bookmarkQuery,
  closed,
  countInput,
  expects,
  maybeAmountOf,
  named,
  namedInput,
  nullable,
  Side,
} from '../wire/schema.ts'

/** Exactly these six fields. */
export const Level = namedInput('Level', {
  side: Side,
  ...amountOf('price', 'Price.'),
  ...amountOf('quantity', 'Quantity of the open orders at this price and side that can execute.'),
  order_count: Type.Integer({ description: 'Orders that can execute at least in part.' }),
})
export type Level = Static<typeof Level>

export const expectedProtectionFields = maybeAmountOf(
  'expected_protection_price',
  'The protection price that the market order would have with the present book: the worst price at which its batch could fill it. A ' +
    'conditional order gets three times the width, as if it had triggered now. Null for limit orders and once a batch has run with the order.',
)

const bookQuery = {
  depth: Type.Optional(countInput(1000, 1000, 'Levels per side.')),
  ...bookmarkQuery,
}
export const BookQuery = closed(bookQuery)
export const BookBySymbolQuery = closed({
  symbol: Type.String({ minLength: 1, ...expects('the symbol of a market') }),
  ...bookQuery,
})

const shardSeq = Type.String({ description: 'Sequence of the market journal that the book reflects.' })

const batchId = nullable(
  Type.Integer({ description: 'The last batch whose matches have left the book; null before the first.' }),
)

export const Book = named('Book', {
  market_id: Type.Integer(),
  symbol: Type.String(),
  shard_seq: shardSeq,
  batch_id: batchId,
  long_levels: Type.Array(Level, { description: 'Best (highest) price first.' }),
  short_levels: Type.Array(Level, { description: 'Best (lowest) price first.' }),
})
export const BookBySymbol = named('BookBySymbol', {
  market_id: Type.Integer(),
  symbol: Type.String(),
  shard_seq: shardSeq,
  batch_id: batchId,
  bids: Type.Array(Level, { description: 'Best (highest) price first.' }),
  asks: Type.Array(Level, { description: 'Best (lowest) price first.' }),
})

/** Transactions of an account. */
import Type, { type Static } from 'typebox'
import { TRANSACTION_TYPES } from '../../domain/journal/transaction-type.ts'
import {
  amountOf,
  bookmarkQuery,
  closed,
  countInput,
  expects,
  MAX_PAGE,
  maybeAmountOf,
  named,
  nullable,
  PositiveInteger,
  rangeQuery,
  Time,
  words,
} from '../wire/schema.ts'

export const Transaction = named('Transaction', {
  id: Type.String({ description: 'Unique id; the same after a rebuild.' }),
  transaction_type: words(TRANSACTION_TYPES, 'What moved the amount.'),
  ...amountOf(
    'amount',
    'The amount that moved, never negative; the deltas have signs. Of a liquidation: by how much the margin of the position changed.',
  ),
  ...amountOf('available_margin_delta', 'Change of the free balance.'),
  ...maybeAmountOf(
    'funding_payment_delta',
    "Change of the position's margin by funding; negative if the position paid. Null for other types.",
  ),
  asset: words(['USDM'], 'The collateral token.'),
  market_id: nullable(Type.Integer({ description: 'Null for deposits and withdrawals.' })),
  market_symbol: nullable(Type.String()),
  tx_hash: nullable(Type.String({ description: 'The transaction on the chain.' })),
  log_index: nullable(Type.Integer({ description: 'Index of its event log within the block.' })),
  block_number: nullable(Type.Integer()),
  created_at: Time('Time of the transaction; with `id`, the cursor of the next page.'),
})
export type Transaction = Static<typeof Transaction>

export const Transactions = named('Transactions', { transactions: Type.Array(Transaction) })

export const TransactionsQuery = closed({
  transaction_type: Type.Optional(words(TRANSACTION_TYPES, 'Only transactions of this type.')),
  market_id: Type.Optional(PositiveInteger('Only transactions in this market.')),
  ...rangeQuery('transactions'),
  limit: Type.Optional(countInput(MAX_PAGE, 100, 'Items per page.')),
  cursor_created_at: Type.Optional(
    Type.String({
      pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,3})?Z$',
      ...expects('an ISO 8601 date-time in UTC that ends in Z, as `created_at` of a transaction'),
      description: '`created_at` of the last transaction of the page before. Requires `cursor_id`.',
    }),
  ),
  cursor_id: Type.Optional(
    Type.String({
      pattern: '^[\\w-]{1,200}$',
      ...expects('the `id` of a transaction'),
      description: '`id` of the same transaction. Requires `cursor_created_at`.',
    }),
  ),
  ...bookmarkQuery,
})

/** Converts a transaction's row to its JSON form. */
import type { Selectable } from 'kysely'
import type { ReadAccountTransactionsTable } from '../../db/read-schema.ts'
import { amount, isoTime, maybeAmount } from '../wire/amounts.ts'
import type { Transaction } from './schema.ts'

export type TransactionRow = Selectable<ReadAccountTransactionsTable>

/** `symbol`: of its market; null if it is in none. */
export const transactionView = (row: TransactionRow, symbol: string | null): Transaction => ({
  id: row.id,
  transaction_type: row.type,
  ...amount('amount', row.amount),
  ...amount('available_margin_delta', row.available_margin_delta),
  ...maybeAmount('funding_payment_delta', row.funding_payment_delta),
  asset: 'USDM',
  market_id: row.market_id,
  market_symbol: symbol,
  tx_hash: row.tx_hash,
  log_index: row.log_index,
  block_number: row.block,
  created_at: isoTime(row.at),
})

/** Transactions as CSV: the fields of the JSON form in its order, amounts as exact decimals. */

import { decimalText, isoTime } from '../wire/amounts.ts'
import type { Cell } from '../wire/csv.ts'
import type { TransactionRow } from './view.ts'

export const CSV_HEADER = [
  ...['id', 'transaction_type', 'amount', 'available_margin_delta', 'funding_payment_delta', 'asset'],
  ...['market_id', 'market_symbol', 'tx_hash', 'log_index', 'block_number', 'created_at'],
] as const

const decimal = (wei: bigint | null): Cell => (wei === null ? null : { decimal: decimalText(wei) })

export const csvOf = (row: TransactionRow, symbol: string | null): readonly Cell[] => [
  ...[row.id, row.type, decimal(row.amount), decimal(row.available_margin_delta)],
  ...[decimal(row.funding_payment_delta), 'USDM', row.market_id, symbol],
  ...[row.tx_hash, row.log_index, row.block, isoTime(row.at)],
]

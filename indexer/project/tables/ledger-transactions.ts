/** `read.ledger_transactions`: one row per deposit and withdrawal of an account. */
import type { Selectable } from 'kysely'
import type { ReadLedgerTransactionsTable } from '../../../db/read-schema.ts'
import { abs } from '../../../domain/units.ts'
import { tableOf } from '../read-table.ts'
import type { RowChange, ShardEntry } from '../row-change.ts'

export type LedgerTransaction = Selectable<ReadLedgerTransactionsTable>

export const LEDGER_TRANSACTIONS = tableOf<LedgerTransaction>({
  table: 'read.ledger_transactions',
  key: ['id'],
  columns: {
    id: 'text',
    user_id: 'bigint',
    type: 'text',
    market_id: 'integer',
    amount: 'numeric',
    available_margin_delta: 'numeric',
    tx_hash: 'text',
    log_index: 'integer',
    block: 'bigint',
    at: 'bigint',
  },
})

/** The id of what an event that is no action did to an account. */
export const eventTransactionId = (
  { tx_hash, log_index }: { readonly tx_hash: string; readonly log_index: number },
  userId: number,
): string => `${tx_hash}-${log_index}-${userId}`

/**
 * A withdrawal is recorded at its request, which takes the amount out of the free balance. Its payout changes the pending withdrawal only;
 * fees that the treasury collects are neither deposit nor withdrawal.
 */
const TYPES = { deposit: 'deposit', withdrawal_request: 'withdrawal' } as const

export function ledgerTransactionChanges({ row }: ShardEntry): RowChange<LedgerTransaction>[] {
  if (row.kind !== 'balance_changed' || !(row.cause in TYPES)) return []
  const { user_id, tx_hash, log_index, block, at } = row
  const id = eventTransactionId(row, user_id)
  const delta = BigInt(row.free_delta)
  const transaction: LedgerTransaction = {
    ...{ id, user_id, type: TYPES[row.cause as keyof typeof TYPES], market_id: null },
    ...{ amount: abs(delta), available_margin_delta: delta, tx_hash, log_index, block, at },
  }
  return [{ key: id, apply: () => (row.rollback ? undefined : transaction) }]
}

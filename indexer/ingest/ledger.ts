/** Writes a change of the bank's ledger, or its inverse, to the account. */
import { changeLedger } from '../../db/accounts.ts'
import type { Tx } from '../../db/client.ts'
import type { BalanceChanged } from '../../domain/journal/accounts-row.ts'

export function writeLedger(tx: Tx, row: BalanceChanged): Promise<void> {
  const signed = (amount: string): string => ((row.rollback ? -1n : 1n) * BigInt(amount)).toString()
  const change = {
    user_id: row.user_id,
    free: signed(row.free_delta),
    pending_withdrawal: signed(row.pending_withdrawal_delta),
  }
  return changeLedger(tx, [change])
}

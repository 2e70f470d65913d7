/**
 * `read.withdrawal_events`: one row per request and per payout of a withdrawal. The bank pays all that is pending at once, so that a payout
 * belongs to all requests since the payout before.
 */
import type { Selectable } from 'kysely'
import { sql } from 'kysely'
import { PROJECTED_TABLES, type ReadWithdrawalEventsTable } from '../../../db/read-schema.ts'
import { abs } from '../../../domain/units.ts'
import type { Projection } from '../projection.ts'
import { tableOf } from '../read-table.ts'
import { type RowChange, RowChanges, type ShardEntry } from '../row-change.ts'
import { eventTransactionId } from './ledger-transactions.ts'

type WithdrawalEvent = Selectable<ReadWithdrawalEventsTable>

const WITHDRAWAL_EVENTS = tableOf<WithdrawalEvent>({
  table: 'read.withdrawal_events',
  key: ['id'],
  columns: {
    id: 'text',
    user_id: 'bigint',
    is_payout: 'boolean',
    amount: 'numeric',
    tx_hash: 'text',
    log_index: 'integer',
    block: 'bigint',
    at: 'bigint',
  },
})

export const withdrawals: Projection = {
  name: 'withdrawals',
  version: 1,
  tables: PROJECTED_TABLES.withdrawals,
  async project(_tx, entries) {
    const changes = entries.flatMap(eventChanges)
    if (changes.length === 0) return { clauses: [] }
    const rows = new RowChanges<WithdrawalEvent>([])
    for (const change of changes) rows.apply(change)
    const removed = rows.removed()
    return {
      clauses: [WITHDRAWAL_EVENTS.replace(rows.changed())],
      async before(tx) {
        if (removed.length === 0) return
        await sql`delete from read.withdrawal_events where id = any(${removed})`.execute(tx)
      },
    }
  },
}

function eventChanges({ row }: ShardEntry): RowChange<WithdrawalEvent>[] {
  if (row.kind !== 'balance_changed') return []
  if (row.cause !== 'withdrawal_request' && row.cause !== 'withdrawal') return []
  const { user_id, tx_hash, log_index, block, at, rollback } = row
  const id = eventTransactionId(row, user_id)
  const amount = abs(BigInt(row.pending_withdrawal_delta))
  const event = { id, user_id, is_payout: row.cause === 'withdrawal', amount, tx_hash, log_index, block, at }
  return [{ key: id, apply: () => (rollback ? undefined : event) }]
}

/**
 * Writes of a group besides the tables that follow the state: evidence for operators, bookmarks of commands, and
 * notifications.
 */
import { ADJUSTMENT_ENDS_CHANNEL, ADJUSTMENTS_CHANNEL } from '../../../db/adjustments.ts'
import { JOURNAL_CHANNEL, journalNotices } from '../../../db/journal.ts'
import type { Notice } from '../../../db/notifications.ts'
import { RELAY_CHANNEL } from '../../../db/relay-operations.ts'
import type { Statement } from '../../../db/round-trip.ts'
import type { Columns } from '../../../db/state-tables.ts'
import { keepReports, mismatchesTable, spannedCommandsTable } from '../../../db/written-chain-tables.ts'
import { reportsOf } from '../../../domain/actions/action.ts'
import { fromStoredPayload } from '../../../domain/actions/stored-action.ts'
import { type Entry, marketIdOf } from '../../../domain/exchange/apply.ts'
import { isInFlight } from '../../../domain/positions/adjustment-attempt.ts'
import type { Millis } from '../../../domain/units.ts'
import { rowsOf, statements } from './part.ts'

const indexReport = (shard: string, price: string, observedAt: number): Columns => ({
  market_id: marketIdOf(shard),
  feed: 'index',
  observed_at: observedAt,
  price,
})

/** Reports on which the rows were decided. Those of triggers and liquidations are known by price and time. */
function reportsIn(group: readonly Entry[]): Columns[] {
  const found: Columns[] = []
  for (const { shard, row } of group) {
    if (row.kind === 'batch_cleared')
      found.push({
        ...indexReport(shard, row.oracle_price, row.oracle_at),
        signatures: row.oracle_signatures,
      })
    else if (row.kind === 'order_triggered') found.push(indexReport(shard, row.oracle_price, row.oracle_at))
    else if (row.kind === 'liquidation_changed' && row.evidence !== null)
      found.push(indexReport(shard, row.evidence.oracle_price, row.evidence.oracle_at))
    else if (row.kind === 'action_queued')
      for (const { feed, report } of reportsOf(
        fromStoredPayload(row.action, row.as_of as Millis, row.payload),
      ))
        found.push({
          market_id: marketIdOf(shard),
          feed,
          observed_at: report.observedAt,
          price: report.price,
          signatures: report.signatures,
        })
  }
  return found
}

/** Notifications for readers, once the tables contain the group. */
export function noticesOf(group: readonly Entry[]): Notice[] {
  const notices: Notice[] = journalNotices(group).map((payload) => ({ channel: JOURNAL_CHANNEL, payload }))
  for (const { row } of group) {
    if (row.kind === 'relay_changed') notices.push({ channel: RELAY_CHANNEL, payload: row.operation_id })
    if (row.kind !== 'adjustment_changed') continue
    const { adjustment_id: payload, request, status } = row
    if (request !== undefined) notices.push({ channel: ADJUSTMENTS_CHANNEL, payload })
    if (!isInFlight(status)) notices.push({ channel: ADJUSTMENT_ENDS_CHANNEL, payload })
  }
  return notices
}

export const rowStatements = (group: readonly Entry[]): Statement[] => [
  ...statements(
    mismatchesTable.put,
    rowsOf(group, 'settlement_mismatched').map(({ row: { kind: _, ...columns } }) => columns),
  ),
  ...statements(keepReports, reportsIn(group)),
  ...statements(
    spannedCommandsTable.put,
    rowsOf(group, 'command_spanned').map(({ seq, row: { shards } }) => ({ seq, shards })),
  ),
]

/**
 * Where a chunk may end without separating the rows of a batch: all messages of a batch come from one row of the feed. The auction appends,
 * in one transaction, orders that time ends, `orders_protected`, `batch_cleared`, and what follows from them. Pure.
 */
import type { BatchCleared, OrdersProtected } from '../../domain/journal/batch-rows.ts'
import type { JournalRow } from '../../domain/journal/journal-row.ts'

/**
 * Rows beyond its limit that a chunk may have, to end with a batch that is larger than the limit. A batch has at most 2,802 rows (turn
 * bounds of the auction: 1,000 orders that time ends, 800 that it fills, 1,000 others); one with more would be separated.
 */
export const MOST_BEYOND = 3_000

/** Rows that follow a batch in its transaction, or precede it. */
const isBeside = ({ kind }: JournalRow): boolean => kind === 'order_ended' || kind === 'reservation_changed'
const isReplacedEnd = (row: JournalRow): boolean =>
  (row.kind === 'order_ended' || row.kind === 'order_ending') && row.reason === 'REPLACED'
const isBatch = (row: JournalRow | undefined): row is BatchCleared | OrdersProtected =>
  row?.kind === 'batch_cleared' || row?.kind === 'orders_protected'

/** The number of rows before the batch with which the rows end, of which further rows may follow; all rows if they end with none. */
export function beforeLastBatch(rows: readonly JournalRow[]): number {
  const last = rows.at(-1)
  // The order that has replaced it comes next: one message has both.
  if (last !== undefined && isReplacedEnd(last)) return beforeLastBatch(rows.slice(0, -1))
  let at = rows.length
  while (at > 0 && isBeside(rows[at - 1] as JournalRow)) at--
  if (!isBatch(rows[at - 1])) return beforeEnded(rows, rows.length, 0)
  let asOf = 0
  for (let row = rows[at - 1]; isBatch(row); row = rows[at - 1]) {
    asOf = row.as_of
    at--
  }
  return beforeEnded(rows, at, asOf)
}

/** The orders that time ends come first in a batch, all of them at one time, which is not before the batch's own. */
function beforeEnded(rows: readonly JournalRow[], end: number, asOf: number): number {
  const last = rows[end - 1]
  let at = end
  if (last?.kind !== 'order_ended' || last.at < asOf) return at
  for (let row = rows[at - 1]; row?.kind === 'order_ended' && row.at === last.at; row = rows[at - 1]) at--
  return at
}

/** The number of rows up to the end of the batch with which they begin; all rows if it does not end. */
export function afterFirstBatch(rows: readonly JournalRow[]): number {
  let hasCleared = false
  for (const [at, row] of rows.entries()) {
    if (!isBatch(row) && !isBeside(row)) return at
    if (isBatch(row) && hasCleared) return at
    hasCleared ||= row.kind === 'batch_cleared'
  }
  return rows.length
}

/**
 * Decides where a chunk may end without separating the rows of a batch, because one feed row contains all messages of a
 * batch. Pure.
 */
import type { BatchCleared, OrdersProtected } from '../../domain/journal/batch-rows.ts'
import type { JournalRow } from '../../domain/journal/journal-row.ts'

/**
 * Rows that a chunk may have above its limit to contain a whole batch. A batch has at most 2,802 rows, by the auction's
 * bounds: 1,000 expired orders, 800 fills, 1,000 other changes, 2 of its own.
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

/**
 * Effect of a journal row on a position's margin, without funding up to the row's index, which is a separate payment.
 */
import type { PartSettled, PositionChange } from '../../../domain/journal/batch-rows.ts'
import type { PositionsMoved } from '../../../domain/journal/journal-row.ts'
import type { Side } from '../../../domain/orders/order.ts'

/** The change of the margin. Rows from before indexes were recorded count at an index of 0: no job of their time set a rate. */
export const marginChange = (
  { funding_index = '0' }: Pick<PartSettled | PositionsMoved, 'funding_index'>,
  { size_delta, folded_margin_delta }: PositionChange,
): bigint => BigInt(folded_margin_delta) - BigInt(size_delta) * BigInt(funding_index)

/** Steps that left a position. */
export interface ClosedPosition {
  readonly side: Side
  readonly steps: number
  /** Wei at the bankruptcy price: entry less margin of a long, entry plus margin of a short. */
  readonly value: bigint
}

/** The part closed from the position of the row's account; null if the row names no account. */
export function closedOf(row: PositionsMoved): ClosedPosition | null {
  const own = row.positions.find(({ user_id }) => user_id === row.account)
  if (own === undefined || own.size_delta === 0) return null
  const margin = marginChange(row, own)
  const isLong = own.size_delta < 0
  return {
    side: isLong ? 'LONG' : 'SHORT',
    steps: Math.abs(own.size_delta),
    value: -BigInt(own.entry_notional_delta) + (isLong ? margin : -margin),
  }
}

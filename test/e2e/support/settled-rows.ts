/** What rows of mined and of rolled back blocks do to balances and positions. */
import type { PositionChange } from '../../../domain/journal/batch-rows.ts'
import { FLAT, type Position } from '../../../domain/positions/position.ts'
import type { Quote, Steps } from '../../../domain/units.ts'

/** The amounts of a row that undoes another one are those of the other. */
export const signedWei = ({ rollback }: { readonly rollback: boolean }, wei: string): bigint =>
  rollback ? -BigInt(wei) : BigInt(wei)

/** The mined position after the row. */
export const movedPosition = (
  { size, entryNotional, foldedMargin } = FLAT,
  { size_delta, entry_notional_delta, folded_margin_delta, leverage_before, leverage_after }: PositionChange,
  row: { readonly rollback: boolean },
): Position => ({
  size: (size + (row.rollback ? -size_delta : size_delta)) as Steps,
  entryNotional: (entryNotional + signedWei(row, entry_notional_delta)) as Quote,
  foldedMargin: (foldedMargin + signedWei(row, folded_margin_delta)) as Quote,
  leverage: row.rollback ? leverage_before : leverage_after,
})

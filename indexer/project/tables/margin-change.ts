/** The change of a position's margin in one journal row, without the funding up to the row's index, which is a payment of its own. */
import type { PartSettled, PositionChange, PositionsMoved } from '../../../domain/journal/journal-row.ts'

/** Rows from before indexes were recorded count at an index of 0: no job of their time set a rate. */
export const marginChange = (
  { funding_index = '0' }: Pick<PartSettled | PositionsMoved, 'funding_index'>,
  { size_delta, folded_margin_delta }: PositionChange,
): bigint => BigInt(folded_margin_delta) - BigInt(size_delta) * BigInt(funding_index)

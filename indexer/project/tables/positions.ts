/** `read.positions`: one row per account and market, with the mined position and the size that is matched and not mined yet. */
import type { Selectable } from 'kysely'
import type { ReadPositionsTable } from '../../../db/read-schema.ts'
import type { MatchedFill, PartSettled } from '../../../domain/journal/batch-rows.ts'
import type { PositionsMoved } from '../../../domain/journal/journal-row.ts'
import { tableOf } from '../read-table.ts'
import { type RowChange, type ShardEntry, signedWei, signOfRow } from '../row-change.ts'

export type ReadPosition = Selectable<ReadPositionsTable>

export const POSITIONS = tableOf<ReadPosition>({
  table: 'read.positions',
  key: ['user_id', 'market_id'],
  columns: {
    user_id: 'bigint',
    market_id: 'integer',
    size: 'bigint',
    entry_notional: 'numeric',
    folded_margin: 'numeric',
    leverage: 'integer',
    pending: 'bigint',
    realized_pnl: 'numeric',
    fees: 'numeric',
    updated_at: 'bigint',
  },
})

export function positionChanges({ marketId, row }: ShardEntry): RowChange<ReadPosition>[] {
  switch (row.kind) {
    case 'batch_cleared':
      return row.fills.map((fill) => addPending(marketId, fill, 1, row.as_of))
    case 'batch_voided':
      return row.fills.map((fill) => addPending(marketId, fill, -1, row.at))
    case 'part_settled':
      return settled(marketId, row)
    case 'positions_moved':
      return moved(marketId, row)
    default:
      return []
  }
}

/** Signed size of a fill; long is positive. */
const sizeOf = ({ side, steps }: Pick<MatchedFill, 'side' | 'steps'>): number =>
  side === 'LONG' ? steps : -steps

const addPending = (
  marketId: number,
  fill: Pick<MatchedFill, 'user_id' | 'side' | 'steps'>,
  sign: 1 | -1,
  at: number,
): RowChange<ReadPosition> =>
  change(marketId, fill.user_id, at, ({ pending }) => ({ pending: pending + sign * sizeOf(fill) }))

function settled(marketId: number, row: PartSettled): RowChange<ReadPosition>[] {
  const sign = signOfRow(row)
  const fills = row.fills.map((fill) =>
    change(marketId, fill.user_id, row.at, (position) => ({
      pending: position.pending - (fill.matched ? sign * sizeOf(fill) : 0),
      realized_pnl: position.realized_pnl + signedWei(row, fill.realized_pnl),
      fees: position.fees + signedWei(row, fill.fee),
    })),
  )
  return [...fills, ...moved(marketId, row)]
}

const moved = (marketId: number, row: PartSettled | PositionsMoved): RowChange<ReadPosition>[] =>
  row.positions.map((each) =>
    change(marketId, each.user_id, row.at, (position) => ({
      size: position.size + signOfRow(row) * each.size_delta,
      entry_notional: position.entry_notional + signedWei(row, each.entry_notional_delta),
      folded_margin: position.folded_margin + signedWei(row, each.folded_margin_delta),
      leverage: row.rollback ? each.leverage_before : each.leverage_after,
    })),
  )

const change = (
  marketId: number,
  userId: number,
  at: number,
  fields: (position: ReadPosition) => Partial<ReadPosition>,
): RowChange<ReadPosition> => ({
  key: String(userId),
  apply: (before = flat(marketId, userId, at)) => ({ ...before, ...fields(before), updated_at: at }),
})

const flat = (marketId: number, userId: number, at: number): ReadPosition => ({
  user_id: userId,
  market_id: marketId,
  size: 0,
  entry_notional: 0n,
  folded_margin: 0n,
  leverage: 0,
  pending: 0,
  realized_pnl: 0n,
  fees: 0n,
  updated_at: at,
})

/** Writes markets, their averages, batches and action queues. */
import type { Statement } from '../../../db/round-trip.ts'
import type { Columns } from '../../../db/state-tables.ts'
import {
  actionsTable,
  averagesTable,
  batchesTable,
  marketProgress,
  marketsTable,
} from '../../../db/written-tables.ts'
import { type Entry, marketIdOf } from '../../../domain/exchange/apply.ts'
import type { ExchangeState } from '../../../domain/exchange/state.ts'
import { actionKey, batchKey } from '../../../domain/exchange/tables/markets.ts'
import type { BatchCleared } from '../../../domain/journal/batch-rows.ts'
import type { ChangedRows, WrittenMark } from './changes.ts'
import { following, keeping, keepingByKey, rowsOf, statements, type TablePart, unwritten } from './part.ts'

export const markets = (mark: WrittenMark, state: ExchangeState): TablePart =>
  following(
    mark,
    state.markets,
    {
      keyOf: ({ market_id }) => market_id,
      columnsOf: (row) => {
        const { symbol, kind, trader } = row.spec
        return { ...row, symbol, kind, trader }
      },
    },
    (rows) => keeping(marketsTable, rows),
  )

export const progress = (mark: WrittenMark, state: ExchangeState): TablePart =>
  following(
    mark,
    state.progress,
    {
      keyOf: ({ marketId }) => marketId,
      columnsOf: (row) => ({
        market_id: row.marketId,
        last_batch_id: row.lastBatchId,
        last_batch_head: row.lastBatchHead,
        last_as_of: row.lastAsOf,
        last_price: row.lastPrice,
        last_price_at: row.lastPriceAt,
        last_action_id: row.lastActionId,
        held_mark: row.isMarkHeld ? row.heldMark : null,
        reserved_fee: row.reservedFee,
        reserving_after: row.reservingAfter,
      }),
    },
    ({ put, changed }) => statements(marketProgress.change, [...put, ...changed]),
  )

export const averages = (mark: WrittenMark, state: ExchangeState): TablePart =>
  following(
    mark,
    state.averages,
    { keyOf: ({ market_id }) => market_id, columnsOf: (row) => ({ ...row }) },
    (rows) => keeping(averagesTable, rows),
  )

export const actions = (mark: WrittenMark, state: ExchangeState): TablePart =>
  following(
    mark,
    state.actions,
    {
      keyOf: ({ market_id, queue_no }) => actionKey(market_id, queue_no),
      columnsOf: ({ changed: _, is_unnamed: __, ...row }) => ({ ...row, created_at: row.as_of }),
    },
    (rows) => keepingByKey(actionsTable, rows),
  )

// ---------------------------------------------------------------------- batches

/** Batch columns that the state lacks, from the row that clears the batch. */
const clearedColumns = ({ lo, hi, volume, demand, supply, rule, as_of }: BatchCleared): Columns => ({
  lo,
  hi,
  volume,
  demand,
  supply,
  rule,
  created_at: as_of,
})

export const batches = (mark: WrittenMark, state: ExchangeState): TablePart =>
  following(
    mark,
    state.batches,
    {
      keyOf: ({ market_id, batch_id }) => batchKey(market_id, batch_id),
      columnsOf: ({ changed: _, ...row }) => ({ ...row }),
    },
    writeBatches,
  )

function writeBatches(rows: ChangedRows, group: readonly Entry[]): Statement[] {
  const cleared = new Map(
    rowsOf(group, 'batch_cleared').map(({ shard, row }) => [batchKey(marketIdOf(shard), row.batch_id), row]),
  )
  const inserted: Columns[] = []
  const changed: Columns[] = []
  for (const columns of [...rows.put, ...rows.changed, ...unwritten(rows)]) {
    const key = batchKey(columns.market_id as number, columns.batch_id as number)
    const row = cleared.get(key)
    if (row === undefined) changed.push(columns)
    else inserted.push({ ...columns, ...clearedColumns(row) })
  }
  return [...statements(batchesTable.put, inserted), ...statements(batchesTable.change, changed)]
}

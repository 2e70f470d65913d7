/** Markets, their averages, their batches, and their queues of actions. */
import { packInputs } from '../../../db/batch-inputs.ts'
import type { Statement } from '../../../db/round-trip.ts'
import type { Columns } from '../../../db/state-tables.ts'
import {
  actionsTable,
  averagesTable,
  batchesTable,
  marketProgress,
  marketsTable,
} from '../../../db/written-tables.ts'
import type { ClearingInputs } from '../../../domain/auction/clearing.ts'
import { type Entry, marketIdOf } from '../../../domain/exchange/apply.ts'
import type { ExchangeState } from '../../../domain/exchange/state.ts'
import { actionKey, batchKey } from '../../../domain/exchange/tables/markets.ts'
import type { BatchCleared } from '../../../domain/journal/batch-rows.ts'
import { type ChangedRows, Changes, type WrittenMark } from './changes.ts'
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

export interface BatchesPart extends TablePart {
  keepInputs(marketId: number, batchId: number, inputs: ClearingInputs): void
}

const inputsColumn = (inputs: ClearingInputs | undefined): string | null =>
  inputs === undefined ? null : `\\x${packInputs(inputs).toString('hex')}`

/** The columns of a batch that the state does not have are those of the row that clears it. */
const clearedColumns = ({ lo, hi, volume, demand, supply, rule, as_of }: BatchCleared): Columns => ({
  lo,
  hi,
  volume,
  demand,
  supply,
  rule,
  created_at: as_of,
})

export function batches(mark: WrittenMark, state: ExchangeState): BatchesPart {
  /** Inputs of batches that are decided and not collected yet. No row has them. */
  const inputs = new Map<string, ClearingInputs>()
  const changes = new Changes(mark, state.batches, {
    keyOf: ({ market_id, batch_id }) => batchKey(market_id, batch_id),
    columnsOf: ({ changed: _, ...row }) => ({ ...row }),
  })

  function write(rows: ChangedRows, group: readonly Entry[]): Statement[] {
    const cleared = new Map(
      rowsOf(group, 'batch_cleared').map(({ shard, row }) => [
        batchKey(marketIdOf(shard), row.batch_id),
        row,
      ]),
    )
    const inserted: Columns[] = []
    const changed: Columns[] = []
    for (const columns of [...rows.put, ...rows.changed, ...unwritten(rows)]) {
      const key = batchKey(columns.market_id as number, columns.batch_id as number)
      const row = cleared.get(key)
      if (row === undefined) changed.push(columns)
      else inserted.push({ ...columns, ...clearedColumns(row), inputs: inputsColumn(inputs.get(key)) })
    }
    for (const key of cleared.keys()) inputs.delete(key)
    return [...statements(batchesTable.put, inserted), ...statements(batchesTable.change, changed)]
  }

  return {
    keepInputs: (marketId, batchId, of) => void inputs.set(batchKey(marketId, batchId), of),
    collect: (group) => write(changes.take(), group),
    forget: () => changes.forget(),
  }
}

/** `read.batches`: one row per cleared batch, with the number of its mined parts. */
import type { Selectable } from 'kysely'
import type { ReadBatchesTable } from '../../../db/read-schema.ts'
import { tableOf } from '../read-table.ts'
import { type RowChange, type ShardEntry, signOfRow } from '../row-change.ts'

export type ReadBatch = Selectable<ReadBatchesTable>

export const BATCHES = tableOf<ReadBatch>({
  table: 'read.batches',
  key: ['market_id', 'batch_id'],
  columns: {
    market_id: 'integer',
    batch_id: 'bigint',
    as_of: 'bigint',
    price: 'bigint',
    lo: 'bigint',
    hi: 'bigint',
    volume: 'bigint',
    demand: 'bigint',
    supply: 'bigint',
    rule: 'text',
    parts: 'integer',
    settled_parts: 'integer',
    oracle_price: 'numeric',
  },
})

export function batchChanges({ marketId, row }: ShardEntry): RowChange<ReadBatch>[] {
  switch (row.kind) {
    case 'batch_cleared': {
      const batch: ReadBatch = {
        market_id: marketId,
        batch_id: row.batch_id,
        as_of: row.as_of,
        price: row.price,
        lo: row.lo,
        hi: row.hi,
        volume: row.volume,
        demand: row.demand,
        supply: row.supply,
        rule: row.rule,
        parts: row.parts,
        settled_parts: 0,
        oracle_price: BigInt(row.oracle_price),
      }
      return [{ key: String(row.batch_id), apply: () => batch }]
    }
    case 'part_settled': {
      const parts = signOfRow(row)
      return [
        {
          key: String(row.batch_id),
          // A batch that this database did not clear has no row.
          apply: (batch) => batch && { ...batch, settled_parts: batch.settled_parts + parts },
        },
      ]
    }
    default:
      return []
  }
}

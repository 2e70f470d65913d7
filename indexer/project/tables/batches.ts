/** `read.batches`: one row per cleared batch, with the number of its mined parts and its status. */
import { type Selectable, sql } from 'kysely'
import { PROJECTED_TABLES, type ReadBatchesTable } from '../../../db/read-schema.ts'
import type { BatchCleared } from '../../../domain/journal/journal-row.ts'
import { rowProjection } from '../projection.ts'
import { tableOf } from '../read-table.ts'
import { type RowChange, type ShardEntry, signOfRow } from '../row-change.ts'

type ReadBatch = Selectable<ReadBatchesTable>

const BATCHES = tableOf<ReadBatch>({
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
    rule_version: 'integer',
    parts: 'integer',
    settled_parts: 'integer',
    status: 'text',
    oracle_price: 'numeric',
    oracle_at: 'bigint',
  },
})

export const batches = rowProjection<ReadBatch>({
  name: 'batches',
  version: 1,
  tables: PROJECTED_TABLES.batches,
  table: BATCHES,
  changes: batchChanges,
  async load(tx, marketId, ids) {
    const { rows } = await sql<ReadBatch>`
      select * from read.batches where market_id = ${marketId} and batch_id = any(${ids}::bigint[])
    `.execute(tx)
    return rows.map((batch) => [String(batch.batch_id), batch] as const)
  },
})

function batchChanges({ marketId, row }: ShardEntry): RowChange<ReadBatch>[] {
  switch (row.kind) {
    case 'batch_cleared': {
      const batch = cleared(marketId, row)
      return [{ key: String(row.batch_id), apply: () => batch }]
    }
    case 'part_settled': {
      const parts = signOfRow(row)
      return [changeIfKnown(row.batch_id, (batch) => mined(batch, batch.settled_parts + parts))]
    }
    case 'batch_voided':
      return [changeIfKnown(row.batch_id, (batch) => ({ ...batch, status: 'VOIDED' }))]
    default:
      return []
  }
}

const cleared = (marketId: number, row: BatchCleared): ReadBatch => ({
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
  rule_version: row.rule_version ?? null,
  parts: row.parts,
  settled_parts: 0,
  status: 'SETTLING',
  oracle_price: BigInt(row.oracle_price),
  oracle_at: row.oracle_at,
})

/** A voided batch stays voided, also if its earlier parts are mined. */
const mined = (batch: ReadBatch, settled_parts: number): ReadBatch => {
  const status = settled_parts === batch.parts ? 'SETTLED' : 'SETTLING'
  return { ...batch, settled_parts, status: batch.status === 'VOIDED' ? batch.status : status }
}

/** A batch that this database did not clear has no row. */
const changeIfKnown = (batchId: number, change: (batch: ReadBatch) => ReadBatch): RowChange<ReadBatch> => ({
  key: String(batchId),
  apply: (batch) => batch && change(batch),
})

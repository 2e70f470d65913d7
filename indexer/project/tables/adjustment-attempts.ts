/** `read.adjustment_attempts`: one row per adjustment attempt, as the last journal row about it states it. */
import type { Selectable } from 'kysely'
import type { ReadAdjustmentAttemptsTable } from '../../../db/adjustment-schema.ts'
import { PROJECTED_TABLES } from '../../../db/read-schema.ts'
import type { Projection } from '../projection.ts'
import { tableOf } from '../read-table.ts'
import type { ShardEntry } from '../row-change.ts'

type Attempt = Selectable<ReadAdjustmentAttemptsTable>

const ATTEMPTS = tableOf<Attempt>({
  table: 'read.adjustment_attempts',
  key: ['adjustment_id'],
  columns: {
    adjustment_id: 'text',
    market_id: 'integer',
    user_id: 'bigint',
    kind: 'text',
    status: 'text',
    amount: 'numeric',
    new_leverage: 'integer',
    tx_hash: 'text',
    failure_kind: 'text',
    failure_reason: 'text',
    created_at: 'bigint',
    updated_at: 'bigint',
  },
})

export const adjustments: Projection = {
  name: 'adjustments',
  version: 1,
  tables: PROJECTED_TABLES.adjustments,
  async project(_tx, entries) {
    const rows = [...new Map(entries.flatMap(present)).values()]
    return rows.length === 0
      ? { clauses: [] }
      : {
          clauses: [ATTEMPTS.replace(rows)],
          feed: rows.map((row) => ({ marketId: row.market_id, adjustments: [row] })),
        }
  },
}

function present({ marketId, row }: ShardEntry): [string, Attempt][] {
  if (row.kind !== 'adjustment_changed') return []
  const { adjustment_id, user_id, adjustment: kind, status, new_leverage, tx_hash, created_at, at } = row
  const { failure_kind, failure_reason } = row
  const attempt = {
    ...{
      adjustment_id,
      market_id: marketId,
      user_id,
      kind,
      status,
      amount: BigInt(row.amount),
      new_leverage,
    },
    ...{ tx_hash, failure_kind, failure_reason, created_at, updated_at: at },
  }
  return [[adjustment_id, attempt]]
}

/** Batches in the read model. */
import type { Selectable } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import type { ReadBatchesTable } from '../../db/read-schema.ts'

/** Tables that `batchesOfMarket` reads. */
export const BATCH_TABLES = ['read.batches'] as const

export type BatchRow = Selectable<ReadBatchesTable>

export interface BatchFilter {
  readonly limit: number
  /** The last batch of the previous page. */
  readonly before: number | null
}

/** Newest first; one row more than `limit` if there is a next page. */
export function batchesOfMarket(
  db: Db | Tx,
  marketId: number,
  { limit, before }: BatchFilter,
): Promise<BatchRow[]> {
  const query = db.selectFrom('read.batches').selectAll().where('market_id', '=', marketId)
  return (before === null ? query : query.where('batch_id', '<', before))
    .orderBy('batch_id', 'desc')
    .limit(limit + 1)
    .execute()
}

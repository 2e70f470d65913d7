/** Batches in the read model. */
import { type RawBuilder, type Selectable, sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import type { ReadBatchesTable } from '../../db/read-schema.ts'
import type { TimeRange } from '../wire/times.ts'

/** Tables that `batchesOfMarket` reads. */
export const BATCH_TABLES = ['read.batches'] as const

export type BatchRow = Selectable<ReadBatchesTable>

export interface BatchFilter extends TimeRange {
  readonly limit: number
  /** The last batch of the previous page. */
  readonly before: number | null
}

/** The first batch of the market at the time or later; a number above every batch if there is none. Times ascend with the batches. */
export const firstBatchAt = (marketId: number, at: number): RawBuilder<number> => sql`coalesce((
  select batch_id from read.batches where market_id = ${marketId} and as_of >= ${at} order by as_of, batch_id limit 1
), ${Number.MAX_SAFE_INTEGER}::bigint)`

/** Whether `batch_id`, a batch of the market, is in the range of times. */
const isBatchIn = (marketId: number, { from, to }: TimeRange): RawBuilder<boolean> => sql`true
  ${from === null ? sql`` : sql`and batch_id >= ${firstBatchAt(marketId, from)}`}
  ${to === null ? sql`` : sql`and batch_id < ${firstBatchAt(marketId, to)}`}
`

/** Newest first; one row more than `limit` if there is a next page. */
export function batchesOfMarket(
  db: Db | Tx,
  marketId: number,
  { limit, before, ...times }: BatchFilter,
): Promise<BatchRow[]> {
  const query = db
    .selectFrom('read.batches')
    .selectAll()
    .where('market_id', '=', marketId)
    .where(isBatchIn(marketId, times))
  return (before === null ? query : query.where('batch_id', '<', before))
    .orderBy('batch_id', 'desc')
    .limit(limit + 1)
    .execute()
}

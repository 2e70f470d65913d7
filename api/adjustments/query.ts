/** Adjustment attempts of an account in the read model. */
import { type Selectable, sql } from 'kysely'
import type { ReadAdjustmentAttemptsTable } from '../../db/adjustment-schema.ts'
import type { Db, Tx } from '../../db/client.ts'
import type { AdjustmentKind, AttemptStatus } from '../../domain/positions/adjustment-attempt.ts'
import { isWithin } from '../wire/list-query.ts'
import type { TimeRange } from '../wire/times.ts'

export type ReadAttempt = Selectable<ReadAdjustmentAttemptsTable>

/** The range is of the time of the request. */
export interface AttemptFilter extends TimeRange {
  readonly adjustmentId?: string | undefined
  readonly marketId?: number | undefined
  readonly kind?: AdjustmentKind | undefined
  readonly status?: AttemptStatus | undefined
  readonly limit: number
}

/** Newest first. */
export function attemptsOfUser(
  db: Db | Tx,
  userId: number,
  { adjustmentId, marketId, kind, status, limit, ...range }: AttemptFilter,
): Promise<ReadAttempt[]> {
  return db
    .selectFrom('read.adjustment_attempts')
    .selectAll()
    .where('user_id', '=', userId)
    .where(isWithin(sql.ref('created_at'), range))
    .$if(adjustmentId !== undefined, (query) => query.where('adjustment_id', '=', adjustmentId as string))
    .$if(marketId !== undefined, (query) => query.where(sql<boolean>`market_id = ${marketId}::bigint`))
    .$if(kind !== undefined, (query) => query.where('kind', '=', kind as AdjustmentKind))
    .$if(status !== undefined, (query) => query.where('status', '=', status as AttemptStatus))
    .orderBy('created_at', 'desc')
    .orderBy('adjustment_id', 'desc')
    .limit(limit)
    .execute()
}

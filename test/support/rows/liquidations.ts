/** Running liquidations. */
import type { Selectable } from 'kysely'
import type { Db, Tx } from '../../../db/client.ts'
import type { LiquidationsTable } from '../../../db/liquidation-schema.ts'
import { anyOf } from '../../../db/values.ts'
import type { RunningLiquidation } from '../../../domain/risk/running-liquidation.ts'
import type { Millis, Seq, Steps, UserId } from '../../../domain/units.ts'

const toLiquidation = (row: Selectable<LiquidationsTable>): RunningLiquidation => ({
  account: row.user_id as UserId,
  number: row.number as Seq,
  stage: row.stage,
  startSize: row.start_size as Steps,
  orderId: row.order_id,
  widenings: row.widenings,
  resting: row.resting as Steps,
  queueNo: row.queue_no,
  attempts: row.attempts,
  failedKind: row.failed_kind,
  retryAt: row.retry_at as Millis,
  seenSeq: row.seen_seq as Seq,
  startedAt: row.started_at as Millis,
})

/** The running liquidations of the accounts in the market, by number. */
export async function loadLiquidations(
  db: Db | Tx,
  marketId: number,
  accounts: Iterable<UserId>,
): Promise<RunningLiquidation[]> {
  const rows = await db
    .selectFrom('liquidations')
    .selectAll()
    .where('market_id', '=', marketId)
    .where('user_id', '=', anyOf('bigint', accounts))
    .orderBy('number')
    .execute()
  return rows.map(toLiquidation)
}

/** The accounts in liquidation in the market with the numbers of their liquidations, by number. */
export async function loadLiquidating(tx: Tx, marketId: number): Promise<[UserId, Seq][]> {
  const rows = await tx
    .selectFrom('liquidations')
    .select(['user_id', 'number'])
    .where('market_id', '=', marketId)
    .orderBy('number')
    .execute()
  return rows.map(({ user_id, number }) => [user_id as UserId, number as Seq])
}

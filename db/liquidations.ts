/** The `liquidations` table: the running liquidations of each market. The caller of a write holds the lock of the market's shard. */
import { type Selectable, sql } from 'kysely'
import type { RunningLiquidation } from '../domain/risk/running-liquidation.ts'
import type { Millis, Seq, Steps, UserId } from '../domain/units.ts'
import type { Db, Tx } from './client.ts'
import type { LiquidationsTable } from './liquidation-schema.ts'
import { anyOf } from './values.ts'

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

/** Inserts liquidations, or replaces them in a later state. */
export async function putLiquidations(
  tx: Tx,
  marketId: number,
  liquidations: readonly RunningLiquidation[],
): Promise<void> {
  if (liquidations.length === 0) return
  await sql`
    insert into liquidations (
      market_id, user_id, number, stage, start_size, order_id, widenings, resting, queue_no, attempts, failed_kind, retry_at,
      seen_seq, started_at
    )
    select ${marketId}, x.account, x.number, x.stage, x."startSize", x."orderId", x.widenings, x.resting, x."queueNo",
      x.attempts, x."failedKind", x."retryAt", x."seenSeq", x."startedAt"
    from json_to_recordset(${JSON.stringify(liquidations)}::json) as x (
      account bigint, number bigint, stage text, "startSize" bigint, "orderId" text, widenings integer, resting bigint,
      "queueNo" bigint, attempts integer, "failedKind" text, "retryAt" bigint, "seenSeq" bigint, "startedAt" bigint
    )
    on conflict (market_id, user_id) do update set
      stage = excluded.stage, order_id = excluded.order_id, widenings = excluded.widenings, resting = excluded.resting,
      queue_no = excluded.queue_no, attempts = excluded.attempts,
      failed_kind = excluded.failed_kind, retry_at = excluded.retry_at, seen_seq = excluded.seen_seq
  `.execute(tx)
}

/** The liquidations of the accounts have ended. */
export async function deleteLiquidations(
  tx: Tx,
  marketId: number,
  accounts: readonly UserId[],
): Promise<void> {
  if (accounts.length === 0) return
  await tx
    .deleteFrom('liquidations')
    .where('market_id', '=', marketId)
    .where('user_id', '=', anyOf('bigint', accounts))
    .execute()
}

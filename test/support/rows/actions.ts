/** Queued actions that a test reads or ends. */
import type { ActionRow } from '../../../db/actions.ts'
import type { Tx } from '../../../db/client.ts'
import { anyOf } from '../../../db/values.ts'
import { adjustingSql } from './adjustments.ts'

/** A part of a batch, as the tables name it. */
export interface PartKey {
  readonly batch_id: number
  readonly part: number
}

/** The part of a batch that the action settles; null for a single action. */
export const partOf = ({ batch_id, part }: ActionRow): PartKey | null =>
  batch_id === null || part === null ? null : { batch_id, part }

/**
 * SQL of the accounts whose positions a pending single action of the market or an adjustment in flight may change, as JSON. `marketId`: an SQL
 * expression.
 */
export const touchedSql = (marketId: string): string => `
  select coalesce(json_agg(distinct account), '[]') as touched from (
    select account from actions a cross join unnest(a.touches) account
    where a.market_id = ${marketId} and a.status in ('QUEUED', 'SIGNED', 'SUBMITTED')
    union all ${adjustingSql(marketId)}
  ) both_kinds
`

/** Why the action was dropped, or had no effect. */
export async function noteFailure(
  tx: Tx,
  { market_id, queue_no }: Pick<ActionRow, 'market_id' | 'queue_no'>,
  failure: string,
): Promise<void> {
  await tx
    .updateTable('actions')
    .set({ failure })
    .where('market_id', '=', market_id)
    .where('queue_no', '=', queue_no)
    .execute()
}

/** `REVERTED`: the action that the chain refused. `VOIDED`: those behind it, which can no longer be mined, and one that was never sent. */
export async function endActions(
  tx: Tx,
  marketId: number,
  queueNos: readonly number[],
  status: 'REVERTED' | 'VOIDED',
): Promise<void> {
  await tx
    .updateTable('actions')
    .set({ status })
    .where('market_id', '=', marketId)
    .where('queue_no', '=', anyOf('bigint', queueNos))
    .execute()
}

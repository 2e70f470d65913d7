/** The `actions` table: each market's queue of operator actions, one per part of a batch, sent in the order of `queue_no`. */
import { type Selectable, sql } from 'kysely'
import type { Millis } from '../domain/units.ts'
import type { Tx } from './client.ts'
import type { PartKey } from './fills.ts'
import type { ActionsTable } from './schema.ts'
import { anyOf, constant } from './values.ts'

export type ActionRow = Selectable<ActionsTable>

/** Queues one action per part of the batch, behind those of the market that are queued already. */
export async function queueActions(
  tx: Tx,
  marketId: number,
  { batchId, parts }: { readonly batchId: number; readonly parts: number },
  asOf: Millis,
): Promise<void> {
  await sql`
    insert into actions (market_id, queue_no, kind, batch_id, part, as_of, status, created_at)
    select ${marketId}, coalesce((select max(queue_no) from actions where market_id = ${marketId}), 0) + part,
      'settle_part', ${batchId}, part, ${asOf}, 'QUEUED', ${asOf}
    from generate_series(1, ${parts}::integer) part
  `.execute(tx)
}

/** The market's first queued action, locked; undefined if none is queued. */
export async function lockNextAction(tx: Tx, marketId: number): Promise<ActionRow | undefined> {
  return tx
    .selectFrom('actions')
    .selectAll()
    .where('market_id', '=', marketId)
    .where('status', '=', constant('QUEUED'))
    .orderBy('queue_no')
    .limit(1)
    .forUpdate()
    .executeTakeFirst()
}

/** Assigns a locked action its id, relayer and nonce. */
export async function signAction(
  tx: Tx,
  { market_id, queue_no }: Pick<ActionRow, 'market_id' | 'queue_no'>,
  signed: { readonly action_id: number; readonly relayer: string; readonly nonce: number },
): Promise<void> {
  await tx
    .updateTable('actions')
    .set({ status: 'SIGNED', ...signed })
    .where('market_id', '=', market_id)
    .where('queue_no', '=', queue_no)
    .execute()
}

/** The signed action with this nonce has been broadcast. Undefined if it was marked before. */
export async function submitAction(tx: Tx, marketId: number, nonce: number): Promise<ActionRow | undefined> {
  return tx
    .updateTable('actions')
    .set({ status: 'SUBMITTED' })
    .where('market_id', '=', marketId)
    .where('nonce', '=', nonce)
    .where('status', '=', constant('SIGNED'))
    .returningAll()
    .executeTakeFirst()
}

/** `REVERTED`: the action that the chain refused. `VOIDED`: those behind it, which can no longer be mined. */
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

/** Queues the signed actions from `fromQueueNo` on again. Their transactions are used up; the next ones get new numbers and nonces. */
export async function requeueActions(tx: Tx, marketId: number, fromQueueNo: number): Promise<void> {
  await tx
    .updateTable('actions')
    .set({ status: 'QUEUED', action_id: null, relayer: null, nonce: null })
    .where('market_id', '=', marketId)
    .where('queue_no', '>=', fromQueueNo)
    .where('status', 'in', ['SIGNED', 'SUBMITTED'])
    .execute()
}

/** Marks the part's action as mined. With `rollback` its block has left the chain, and the same transaction is sent again. */
export async function settleAction(
  tx: Tx,
  marketId: number,
  { batch_id, part }: PartKey,
  { rollback }: { readonly rollback: boolean },
): Promise<void> {
  await tx
    .updateTable('actions')
    .set({ status: rollback ? 'SUBMITTED' : 'MINED' })
    .where('market_id', '=', marketId)
    .where('batch_id', '=', batch_id)
    .where('part', '=', part)
    .where('status', 'in', rollback ? ['MINED'] : ['SIGNED', 'SUBMITTED'])
    .execute()
}

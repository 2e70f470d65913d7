/** The `fills` table. A fill moves MATCHED → SUBMITTED → MINED → CONFIRMED; RETRYING if its block leaves the chain; FAILED if voided. */
import { sql } from 'kysely'
import type { PlannedBatch } from '../domain/auction/batch-plan.ts'
import type { Tx } from './client.ts'
import { toJson } from './json.ts'

/** A part of a batch, as the tables name it. */
export interface PartKey {
  readonly batch_id: number
  readonly part: number
}

export async function insertFills(
  tx: Tx,
  marketId: number,
  { batchId, fills }: Pick<PlannedBatch, 'batchId' | 'fills'>,
): Promise<void> {
  await sql`
    insert into fills (fill_id, market_id, batch_id, part, place, order_id, user_id, side, steps, taker_steps,
      partial_slot, held, status)
    select x.fill_id, ${marketId}, ${batchId}, x.part, x.place, x.order_id, x.user_id, x.side, x.steps, x.taker_steps,
      x.partial_slot, x.held, 'MATCHED'
    from jsonb_to_recordset(${toJson(fills)}::jsonb) as x(
      fill_id text, part integer, place integer, order_id text, user_id bigint, side text, steps bigint,
      taker_steps bigint, partial_slot integer, held numeric
    )
  `.execute(tx)
}

export async function submitFills(tx: Tx, marketId: number, { batch_id, part }: PartKey): Promise<void> {
  await tx
    .updateTable('fills')
    .set({ status: 'SUBMITTED' })
    .where('market_id', '=', marketId)
    .where('batch_id', '=', batch_id)
    .where('part', '=', part)
    .where('status', '=', 'MATCHED')
    .execute()
}

/** Fails every fill of voided parts. */
export async function failFills(tx: Tx, marketId: number, parts: readonly PartKey[]): Promise<void> {
  await sql`
    update fills set status = 'FAILED'
    from jsonb_to_recordset(${JSON.stringify(parts)}::jsonb) as x(batch_id bigint, part integer)
    where fills.market_id = ${marketId} and fills.batch_id = x.batch_id and fills.part = x.part
  `.execute(tx)
}

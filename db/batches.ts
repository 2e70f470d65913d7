/** The `batches` table. */
import { sql } from 'kysely'
import type { PlannedBatch } from '../domain/auction/batch-plan.ts'
import type { Millis } from '../domain/units.ts'
import type { Tx } from './client.ts'
import { toJson } from './json.ts'

export async function insertBatch(
  tx: Tx,
  marketId: number,
  batch: PlannedBatch,
  asOf: Millis,
): Promise<void> {
  const { clearing, oracle, batchId } = batch
  const { price, lo, hi, volume, demand, supply, rule, inputs } = clearing
  await tx
    .insertInto('batches')
    .values({
      market_id: marketId,
      batch_id: batchId,
      as_of: asOf,
      ...{ price, lo, hi, volume, demand, supply, rule },
      parts: batch.parts,
      oracle_price: oracle.price,
      oracle_at: oracle.observedAt,
      oracle_signatures: oracle.signatures,
      maker_fee: inputs.spec.makerFee,
      taker_fee: inputs.spec.takerFee,
      inputs: toJson(inputs),
      status: 'SETTLING',
      created_at: asOf,
    })
    .execute()
}

/** Marks batches of which at least one part will not be mined. A voided batch stays voided. */
export async function voidBatches(tx: Tx, marketId: number, batchIds: Iterable<number>): Promise<void> {
  await tx
    .updateTable('batches')
    .set({ status: 'VOIDED' })
    .where('market_id', '=', marketId)
    .where('batch_id', 'in', [...new Set(batchIds)])
    .execute()
}

/** SETTLED once every part is mined, SETTLING again if a mined part leaves the chain. Runs after `settleAction`. */
export async function settleBatch(tx: Tx, marketId: number, batchId: number): Promise<void> {
  await sql`
    update batches set status = case
      when status = 'VOIDED' then status
      when parts = (select count(*) from actions where market_id = ${marketId} and batch_id = ${batchId} and status = 'MINED')
      then 'SETTLED' else 'SETTLING' end
    where market_id = ${marketId} and batch_id = ${batchId}
  `.execute(tx)
}

/** The `batches` table. */
import { sql } from 'kysely'
import type { OracleReport } from '../domain/settlement/settlement.ts'
import type { Millis, Price, Rate, Ticks } from '../domain/units.ts'
import type { Db, Tx } from './client.ts'

/** The terms on which every part of a batch settles. */
export interface BatchTerms {
  readonly batchId: number
  readonly parts: number
  readonly asOf: Millis
  readonly price: Ticks
  readonly makerFee: Rate
  readonly takerFee: Rate
  readonly oracle: OracleReport
}

export async function loadTerms(tx: Db | Tx, marketId: number, batchId: number): Promise<BatchTerms> {
  const row = await tx
    .selectFrom('batches')
    .select(['parts', 'as_of', 'price', 'maker_fee', 'taker_fee'])
    .select(['oracle_price', 'oracle_at', 'oracle_signatures'])
    .where('market_id', '=', marketId)
    .where('batch_id', '=', batchId)
    .executeTakeFirstOrThrow()
  return {
    batchId,
    parts: row.parts,
    asOf: row.as_of as Millis,
    price: row.price as Ticks,
    makerFee: row.maker_fee as Rate,
    takerFee: row.taker_fee as Rate,
    oracle: {
      price: row.oracle_price as Price,
      observedAt: row.oracle_at as Millis,
      signatures: row.oracle_signatures as `0x${string}`,
    },
  }
}

/** The stored inputs of a batch, packed. Null if there is no such batch, or they are deleted. */
export async function loadPackedInputs(
  db: Db | Tx,
  marketId: number,
  batchId: number,
): Promise<Buffer | null> {
  const row = await db
    .selectFrom('batch_inputs')
    .select('inputs')
    .where('market_id', '=', marketId)
    .where('batch_id', '=', batchId)
    .executeTakeFirst()
  return row?.inputs ?? null
}

/** Deletes the inputs of the oldest batches up to `asOf`, at most `most`. Returns how many were deleted. Locking them first would take the right to update. */
export async function deleteInputs(tx: Tx, asOf: Millis, most: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    delete from batch_inputs where ctid = any(array(
      select ctid from batch_inputs where as_of <= ${asOf} order by as_of limit ${most}
    ))
  `.execute(tx)
  return Number(numAffectedRows)
}

/** Reads the input of a batch proof: the stored auction inputs, and the states of its fills. */
import { sql } from 'kysely'
import { loadPackedInputs, loadTerms } from '../../db/batches.ts'
import type { Db, Tx } from '../../db/client.ts'
import type { FillStatus } from '../../domain/orders/order-state.ts'
import type { OracleReport } from '../../domain/settlement/settlement.ts'
import type { MarketId, Seq } from '../../domain/units.ts'
import { ApiError } from '../errors.ts'
import { proofKey } from './proof-salts.ts'

/** Tables of the read model that `batchState` and `captureBatch` read. */
export const PROOF_TABLES = ['read.batches', 'read.fills'] as const

export interface BatchKey {
  readonly marketId: MarketId
  readonly batchId: number
}

export interface BatchState {
  /** Every part is confirmed or voided. */
  readonly isFinal: boolean
  /** States of the parts, with their transactions. Equal states of a final batch have equal proofs. */
  readonly parts: string
}

/**
 * Input of the proof thread. Rows stay JSON text on this thread: parsing a batch with 10,000 orders would delay other
 * requests.
 */
export interface CapturedBatch extends BatchKey {
  readonly key: Uint8Array
  /** See `unpackInputs`. */
  readonly inputs: Uint8Array
  readonly oracle: OracleReport
  /** A list of `FillRow`. */
  readonly fills: string
}

export interface FillRow {
  readonly order_id: string
  readonly part: number
  readonly steps: number
  readonly taker_steps: number
  readonly status: FillStatus
  readonly tx_hash: string | null
}

/** Orders by what the inputs of a batch name them by. The lists are arrays of Postgres. */
export interface OrderNames {
  readonly ids: string
  /** Sequences that triggers gave. */
  readonly triggered: string
}

/** `[seq, order_id, hash]`. */
export type NameRow = readonly [seq: Seq, orderId: string, hash: string]

export const notAvailable = ({ batchId }: BatchKey): ApiError =>
  new ApiError('PROOF_NOT_AVAILABLE', { field: 'batch_id', received: String(batchId) })

/** Throws AUCTION_NOT_FOUND. */
export async function batchState(db: Db | Tx, { marketId, batchId }: BatchKey): Promise<BatchState> {
  const row = await db
    .selectFrom('read.batches')
    .select(['is_final', sql<string>`part_states::text`.as('parts')])
    .where('market_id', '=', marketId)
    .where('batch_id', '=', batchId)
    .executeTakeFirst()
  if (row === undefined)
    throw new ApiError('AUCTION_NOT_FOUND', { field: 'batch_id', received: String(batchId) })
  return { isFinal: row.is_final, parts: row.parts }
}

/** Reads an existing batch. Throws PROOF_NOT_AVAILABLE. */
export async function captureBatch(db: Db | Tx, batch: BatchKey): Promise<CapturedBatch> {
  const { marketId, batchId } = batch
  const inputs = await loadPackedInputs(db, marketId, batchId)
  if (inputs === null) throw notAvailable(batch)
  const { oracle } = await loadTerms(db, marketId, batchId)
  const { rows } = await sql<{ fills: string }>`
    select coalesce(json_agg(f), '[]')::text as fills from (
      select order_id, part, steps, taker_steps, status, tx_hash from read.fills
      where market_id = ${marketId} and batch_id = ${batchId}
    ) f
  `.execute(db)
  return { ...batch, key: await proofKey(db), inputs, oracle, fills: rows[0]?.fills ?? '[]' }
}

/**
 * JSON list of `NameRow`. An order id contains its acceptance sequence; a triggered conditional order has a different
 * sequence in the book.
 */
export async function namesOf(db: Db, marketId: MarketId, { ids, triggered }: OrderNames): Promise<string> {
  const { rows } = await sql<{ names: string }>`
    select coalesce(json_agg(json_build_array(seq, order_id, hash)), '[]')::text as names from (
      select seq, order_id, hash from orders where order_id = any(${ids}::text[])
      union all
      select seq, order_id, hash from orders
      where market_id = ${marketId} and seq = any(${triggered}::bigint[]) and triggered is not null
    ) named
  `.execute(db)
  return rows[0]?.names ?? '[]'
}

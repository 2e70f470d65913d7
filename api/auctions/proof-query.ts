/** What the proof of a batch is made from: the inputs that its auction stored, and what became of its fills. */
import { loadInputs, loadTerms } from '../../db/batches.ts'
import type { Db, Tx } from '../../db/client.ts'
import { anyOf } from '../../db/values.ts'
import { type ClearingInputs, RULE_VERSION } from '../../domain/auction/clearing.ts'
import type { RestingOrder } from '../../domain/book/book.ts'
import { orderIdOf } from '../../domain/orders/order.ts'
import type { FillStatus } from '../../domain/orders/order-state.ts'
import { statedSequence } from '../../domain/proof/statement.ts'
import type { OracleReport } from '../../domain/settlement/settlement.ts'
import type { MarketId, Seq } from '../../domain/units.ts'
import { ApiError } from '../errors.ts'
import { proofKey } from './proof-salts.ts'

/** Tables of the read model that `capturedBatch` reads. */
export const PROOF_TABLES = ['read.batches', 'read.fills'] as const

export interface BatchKey {
  readonly marketId: MarketId
  readonly batchId: number
}

export interface FillRow {
  readonly order_id: string
  readonly part: number
  readonly steps: number
  readonly taker_steps: number
  readonly status: FillStatus
  readonly tx_hash: string | null
}

export interface OrderName {
  readonly order_id: string
  readonly hash: string
}

export interface CapturedBatchRows extends BatchKey {
  readonly key: Buffer
  readonly inputs: ClearingInputs
  readonly oracle: OracleReport
  /** Of every order in the inputs. */
  readonly orders: ReadonlyMap<Seq, OrderName>
  readonly fills: readonly FillRow[]
}

/** Throws AUCTION_NOT_FOUND. */
export async function expectBatch(db: Db | Tx, { marketId, batchId }: BatchKey): Promise<void> {
  const row = await db
    .selectFrom('read.batches')
    .select('batch_id')
    .where('market_id', '=', marketId)
    .where('batch_id', '=', batchId)
    .executeTakeFirst()
  if (row === undefined)
    throw new ApiError('AUCTION_NOT_FOUND', { field: 'batch_id', received: String(batchId) })
}

/** Throws AUCTION_NOT_FOUND or PROOF_NOT_AVAILABLE. */
export async function capturedBatch(db: Db | Tx, batch: BatchKey): Promise<CapturedBatchRows> {
  const { marketId, batchId } = batch
  await expectBatch(db, batch)
  const inputs = await loadInputs(db, marketId, batchId)
  if (inputs?.ruleVersion !== RULE_VERSION)
    throw new ApiError('PROOF_NOT_AVAILABLE', { field: 'batch_id', received: String(batchId) })
  const { oracle } = await loadTerms(db, marketId, batchId)
  const orders = await namesOf(db, marketId, statedSequence(inputs))
  const fills = await db
    .selectFrom('read.fills')
    .select(['order_id', 'part', 'steps', 'taker_steps', 'status', 'tx_hash'])
    .where('market_id', '=', marketId)
    .where('batch_id', '=', batchId)
    .execute()
  return { ...batch, key: await proofKey(db), inputs, oracle, orders, fills }
}

/** The id of an order names the sequence of its acceptance; its trigger gave a conditional order another one. */
async function namesOf(
  db: Db | Tx,
  marketId: MarketId,
  orders: readonly RestingOrder[],
): Promise<Map<Seq, OrderName>> {
  const ids = orders.filter(({ triggered }) => !triggered).map(({ seq }) => orderIdOf(marketId, seq))
  const seqs = orders.filter(({ triggered }) => triggered).map(({ seq }) => seq)
  const select = db.selectFrom('orders').select(['order_id', 'seq', 'hash'])
  const plain = await select.where('order_id', '=', anyOf('text', ids)).execute()
  const triggered =
    seqs.length === 0
      ? []
      : await select
          .where('market_id', '=', marketId)
          .where('seq', '=', anyOf('bigint', seqs))
          .where('triggered', 'is not', null)
          .execute()
  return new Map([...plain, ...triggered].map(({ seq, ...name }) => [seq as Seq, name]))
}

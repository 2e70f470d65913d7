/**
 * Salts of the commitments in proofs. Each is an HMAC over market, batch and order under a key that only the exchange has: nothing is stored
 * per order, and a published salt reveals nothing about another.
 */
import { createHmac } from 'node:crypto'
import type { Db, Tx } from '../../db/client.ts'
import { type CommittedOrder, commitment } from '../../domain/proof/commitment.ts'
import { keccak } from '../../service/crypto.ts'

export const proofKey = async (db: Db | Tx): Promise<Buffer> =>
  (await db.selectFrom('proof_keys').select('key').executeTakeFirstOrThrow()).key

/** An order in a batch, with the salt that opens its commitment. */
export function saltedOrder(key: Buffer, order: Omit<CommittedOrder, 'salt'>): CommittedOrder {
  const { marketId, batchId, orderHash } = order
  const digest = createHmac('sha256', key)
    .update(`clearbatch proof ${marketId} ${batchId} ${orderHash}`)
    .digest('hex')
  return { ...order, salt: `0x${digest}` }
}

export const commitmentOf = (order: CommittedOrder): string => commitment(keccak, order)

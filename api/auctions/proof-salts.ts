/**
 * Salts of the commitments in proofs. They are derived by HMAC from a secret key, so that none is stored and a
 * published salt reveals no other salt.
 */
import { createHmac } from 'node:crypto'
import type { Db, Tx } from '../../db/client.ts'
import { toHex, writeHex } from '../../domain/hex.ts'
import { invariant } from '../../domain/invariant.ts'
import { type CommittedOrder, commitment } from '../../domain/proof/commitment.ts'
import { keccak } from '../../service/crypto.ts'

const WORD = 32

export const proofKey = async (db: Db | Tx): Promise<Buffer> =>
  (await db.selectFrom('proof_keys').select('key').executeTakeFirstOrThrow()).key

/** Names an order of a batch, with the salt that opens its commitment. */
export type SaltOrder = (orderHash: string) => CommittedOrder

/** Keccak has no length extension: hashing key and message is a MAC. It is much faster than an HMAC per order. */
export function saltedOrders(key: Uint8Array, marketId: number, batchId: number): SaltOrder {
  const message = new Uint8Array(2 * WORD)
  message.set(createHmac('sha256', key).update(`clearbatch proof ${marketId} ${batchId}`).digest())
  return (orderHash) => {
    invariant(
      orderHash.length === 2 + 2 * WORD && writeHex(orderHash, message, WORD),
      'an order hash is 32 bytes of hex',
    )
    return { orderHash, marketId, batchId, salt: toHex(keccak(message)) }
  }
}

export const commitmentOf = (order: CommittedOrder): string => commitment(keccak, order)

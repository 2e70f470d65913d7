/**
 * Commitments to the orders of a batch: traders can find their own orders in a statement that names no account.
 */
import { toHex, writeHex } from '../hex.ts'
import { invariant } from '../invariant.ts'
import type { Keccak } from '../orders/order-hash.ts'

const WORD = 32

export interface CommittedOrder {
  /**
   * 32 bytes of hex, known only to the exchange and the order's account. It differs by market, batch and order.
   */
  readonly salt: string
  readonly orderHash: string
  readonly marketId: number
  readonly batchId: number
}

/** keccak256(salt ‖ order hash ‖ market ‖ batch): four words, the numbers as uint256. */
export function commitment(keccak: Keccak, { salt, orderHash, marketId, batchId }: CommittedOrder): string {
  const bytes = new Uint8Array(4 * WORD)
  invariant(isWord(salt) && writeHex(salt, bytes, 0), 'a salt is 32 bytes of hex')
  invariant(isWord(orderHash) && writeHex(orderHash, bytes, WORD), 'an order hash is 32 bytes of hex')
  const view = new DataView(bytes.buffer)
  view.setBigUint64(3 * WORD - 8, BigInt(marketId))
  view.setBigUint64(4 * WORD - 8, BigInt(batchId))
  return toHex(keccak(bytes))
}

const isWord = (text: string): boolean => text.length === 2 + 2 * WORD && text.startsWith('0x')

/** Hashes price reports (EIP-712 in the domain of the SignedPriceOracle) and checks the signatures of its signers. */
import { toHex, writeHex } from '../hex.ts'
import { invariant } from '../invariant.ts'
import { ascii, type Keccak, type Recover, separatorOf, writeUint } from '../orders/order-hash.ts'
import type { Address } from '../units.ts'
import type { Reading } from './aggregate.ts'

export const REPORT_TYPE = 'PriceReport(bytes32 feedId,uint256 price,uint256 observedAt)'

/** 32 bytes, lower case hex: the name of a feed at the oracle. */
export type FeedId = `0x${string}`

export interface OracleDomain {
  readonly chainId: bigint
  /** The SignedPriceOracle. */
  readonly oracle: Address
}

/** The digest that the signers of a feed sign. A view that the next call overwrites. */
export type ReportHasher = (feedId: FeedId, reading: Reading) => Uint8Array

const WORD = 32

/** Everything that does not depend on the report is hashed and laid out once. */
export function reportHasher({ chainId, oracle }: OracleDomain, keccak: Keccak): ReportHasher {
  const struct = new Uint8Array(4 * WORD)
  const view = new DataView(struct.buffer)
  struct.set(keccak(ascii(REPORT_TYPE)), 0)
  const typed = new Uint8Array(2 + 2 * WORD)
  typed.set([0x19, 0x01], 0)
  typed.set(separatorOf({ name: 'SignedPriceOracle', version: '1', chainId, contract: oracle }, keccak), 2)
  return (feedId, { price, observedAt }) => {
    invariant(feedId.length === 66 && writeHex(feedId, struct, WORD), 'a feed id is 32 bytes of hex')
    writeUint(view, 2 * WORD, price)
    writeUint(view, 3 * WORD, BigInt(observedAt))
    typed.set(keccak(struct), 2 + WORD)
    return keccak(typed)
  }
}

export const SIGNATURE_BYTES = 65

/**
 * The signer of a digest; null if `signature` is not 65 bytes of hex with v 27 or 28, or recovers no address. The contract
 * rejects a high s, which no honest signer makes; the caller compares the address.
 */
export function signerOf(digest: Uint8Array, signature: string, recover: Recover): Address | null {
  const bytes = new Uint8Array(SIGNATURE_BYTES)
  if (signature.length !== 2 + 2 * SIGNATURE_BYTES || !writeHex(signature, bytes, 0)) return null
  const v = bytes[SIGNATURE_BYTES - 1] as number
  if ((v !== 27 && v !== 28) || (bytes[WORD] as number) > HIGH_S_BYTE) return null
  const signer = recover(digest, bytes.subarray(0, 2 * WORD), v === 27 ? 0 : 1)
  return signer === null ? null : (toHex(signer) as Address)
}

/** The first byte of half the group order. Of an s that starts with it, one in 2^120 is still high. */
const HIGH_S_BYTE = 0x7f

/** The proof of a report: signatures in ascending order of their signers, as the contract demands. */
export const proofOf = (signatures: ReadonlyMap<Address, string>): `0x${string}` =>
  `0x${[...signatures]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, signature]) => signature.slice(2))
    .join('')}`

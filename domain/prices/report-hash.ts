/** Hashes price reports (EIP-712 in the SignedPriceOracle domain) and verifies their signatures. */
import { toHex, writeHex } from '../hex.ts'
import { invariant } from '../invariant.ts'
import { ascii, type Keccak, type Recover, separatorOf, writeUint } from '../orders/order-hash.ts'
import type { Address } from '../units.ts'
import type { Reading } from './aggregate.ts'

export const REPORT_TYPE = 'PriceReport(bytes32 feedId,uint256 price,uint256 observedAt)'

/** Feed id at the oracle: 32 bytes, lower-case hex. */
export type FeedId = `0x${string}`

export interface OracleDomain {
  readonly chainId: bigint
  /** Address of the SignedPriceOracle. */
  readonly oracle: Address
}

/** Returns the digest that a feed's signers sign. The result is a view that the next call overwrites. */
export type ReportHasher = (feedId: FeedId, reading: Reading) => Uint8Array

const WORD = 32

/** Creates a function from a report to the bytes whose hash is its digest. Everything independent of the report is hashed and laid out once. */
export function reportPreimage({ chainId, oracle }: OracleDomain, keccak: Keccak): ReportHasher {
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
    return typed
  }
}

export function reportHasher(domain: OracleDomain, keccak: Keccak): ReportHasher {
  const preimageOf = reportPreimage(domain, keccak)
  return (feedId, reading) => keccak(preimageOf(feedId, reading))
}

export const SIGNATURE_BYTES = 65

/**
 * Signer of a digest; the caller compares the address.
 * Null if `signature` is not 65 bytes of hex with v 27 or 28, or recovers no address. The contract rejects a
 * high s, which no honest signer produces.
 */
export function signerOf(digest: Uint8Array, signature: string, recover: Recover): Address | null {
  const bytes = new Uint8Array(SIGNATURE_BYTES)
  if (signature.length !== 2 + 2 * SIGNATURE_BYTES || !writeHex(signature, bytes, 0)) return null
  const v = bytes[SIGNATURE_BYTES - 1] as number
  if ((v !== 27 && v !== 28) || (bytes[WORD] as number) > HIGH_S_BYTE) return null
  const signer = recover(digest, bytes.subarray(0, 2 * WORD), v === 27 ? 0 : 1)
  return signer === null ? null : (toHex(signer) as Address)
}

/** First byte of half the group order. An s with this first byte is high with probability 2^-120. */
const HIGH_S_BYTE = 0x7f

/** Proof of a report: signatures in ascending order of signer address, as the contract requires. */
export const proofOf = (signatures: ReadonlyMap<Address, string>): `0x${string}` =>
  `0x${[...signatures]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, signature]) => signature.slice(2))
    .join('')}`

/** The port behind which every private key of the exchange's processes is: in memory, in an encrypted keystore, or in a remote signer. */
import { toHex, writeHex } from '../../domain/hex.ts'
import type { Address } from '../../domain/units.ts'
import { addressOf, keccak, sign } from '../crypto.ts'

export interface KeySource {
  readonly address: Address
  /** Where the key is, for logs and messages. Contains no secret. */
  readonly place: string
  /** A remote key may be unavailable for a time. */
  readonly isRemote: boolean
  /** Resolves when the key can sign; rejects with a KeySourceError that says why it cannot. */
  ready(): Promise<void>
  /**
   * Signs keccak256(preimage) as r, s (low), v (27 or 28), or rejects with a KeySourceError. Preimage: unsigned
   * transaction, or 0x1901, EIP-712 domain and struct hash.
   */
  sign(preimage: Uint8Array): Promise<Uint8Array>
}

/** The message names where the key is, and no secret. */
export class KeySourceError extends Error {
  override readonly name = 'KeySourceError'
}

const KEY_BYTES = 32

/** 0x and 64 hexadecimal digits. Whether they are a key of the curve shows when the source is created. */
export const PLAIN_KEY = /^0x[0-9a-fA-F]{64}$/

/** Throws if the text is no private key; the error does not contain it. */
export function bytesOfKey(privateKey: string): Uint8Array {
  const key = new Uint8Array(KEY_BYTES)
  if (PLAIN_KEY.test(privateKey) && writeHex(privateKey, key, 0))
    try {
      addressOf(key)
      return key
    } catch {
      // Falls through: zero, or not below the order of the curve.
    }
  throw new KeySourceError(
    'the private key is invalid: expected 0x and 64 hexadecimal digits, above 0 and below the order of secp256k1',
  )
}

export const addressOfBytes = (key: Uint8Array): Address => toHex(addressOf(key)) as Address

export const signWith = (preimage: Uint8Array, key: Uint8Array): Uint8Array => sign(keccak(preimage), key)

/** A key in this process's memory. */
export function plainKey(privateKey: string): KeySource {
  const key = bytesOfKey(privateKey)
  return {
    address: addressOfBytes(key),
    place: 'memory',
    isRemote: false,
    ready: async () => {},
    sign: async (preimage) => signWith(preimage, key),
  }
}

/**
 * Default signer: a private key in memory, on @noble/secp256k1 or on a native curve that the program passes.
 */
import { sha256 } from '@noble/hashes/sha2.js'
import { getPublicKey, hashes, sign as signHash, utils } from '@noble/secp256k1'
import { toHex } from '../../domain/hex.ts'
import { personalHasher } from '../../domain/orders/order-hash.ts'
import { bytesOf, checksumAddress, utf8 } from '../bytes.ts'
import { signedTransaction, signingHash } from '../chain/transaction.ts'
import { keccak } from '../keccak.ts'
import { hashTypedData } from '../typed-data.ts'
import type { AccountSigner } from './signer.ts'

/** Signs a 32-byte hash: r and s (64 bytes, low s) and the recovery id. */
export type Curve = (
  hash: Uint8Array,
  privateKey: Uint8Array,
) => { readonly rs: Uint8Array; readonly recoveryId: number }

/** SHA-256 block size in bytes. */
const BLOCK = 64

/**
 * HMAC (RFC 2104) with a key of at most one block. The library's HMAC module would add 1 % to a browser bundle.
 */
function hmacSha256(key: Uint8Array, message: Uint8Array): Uint8Array<ArrayBuffer> {
  const padded = (pad: number, content: Uint8Array): Uint8Array<ArrayBuffer> => {
    const bytes = new Uint8Array(BLOCK + content.length).fill(pad, 0, BLOCK)
    key.forEach((byte, at) => {
      bytes[at] = byte ^ pad
    })
    bytes.set(content, BLOCK)
    return sha256(bytes)
  }
  return padded(0x5c, padded(0x36, message))
}

/** The package derives nonces (RFC 6979) with these hashes and includes no synchronous hash of its own. */
hashes.sha256 = sha256
hashes.hmacSha256 = hmacSha256

export const nobleCurve: Curve = (hash, privateKey) => {
  const signature = signHash(hash, privateKey, { prehash: false, format: 'recovered' })
  return { rs: signature.subarray(1), recoveryId: signature[0] as number }
}

/** Keccak hash of a personal message. */
function personalHash(content: Uint8Array): Uint8Array {
  const prefix = utf8(`\x19Ethereum Signed Message:\n${content.length}`)
  const message = new Uint8Array(prefix.length + content.length)
  message.set(prefix)
  message.set(content, prefix.length)
  return keccak(message)
}

function keyOf(privateKey: string): Uint8Array {
  const text = privateKey.startsWith('0x') ? privateKey : `0x${privateKey}`
  // The error message must not contain the key.
  if (!/^0x[0-9a-fA-F]{64}$/.test(text) || !utils.isValidSecretKey(bytesOf(text)))
    throw new RangeError(
      'a private key is 0x and 64 hexadecimal digits, above 0 and below the order of secp256k1',
    )
  return bytesOf(text)
}

export function addressOfKey(privateKey: string): string {
  const point = getPublicKey(keyOf(privateKey), false)
  return checksumAddress(toHex(keccak(point.subarray(1)).subarray(12)))
}

export function privateKeySigner(privateKey: string, curve: Curve = nobleCurve): AccountSigner {
  const key = keyOf(privateKey)
  const hasher = personalHasher(keccak)
  const sign = (hash: Uint8Array): string => {
    const { rs, recoveryId } = curve(hash, key)
    return `${toHex(rs)}${(27 + recoveryId).toString(16)}`
  }
  return {
    address: addressOfKey(privateKey),
    signDigest: (digest) => sign(hasher(digest)),
    signMessage: (text) => sign(personalHash(utf8(text))),
    signTypedData: (typed) => sign(hashTypedData(typed)),
    signTransaction: (transaction) => signedTransaction(transaction, sign(signingHash(transaction))),
  }
}

/** A new private key from the system's random source. */
export const randomKey = (): string => toHex(utils.randomSecretKey())

/** Keccak in WebAssembly, and native signing and public-key recovery: fast enough for every order and every price report. */
import { createKeccak } from 'hash-wasm'
import secp256k1 from 'secp256k1'
import type { Keccak, Recover } from '../domain/orders/order-hash.ts'

/** One hasher for all calls, which are synchronous and therefore never overlap. */
const hasher = await createKeccak(256)

export const keccak: Keccak = (message) => hasher.init().update(message).digest('binary')

const publicKey = new Uint8Array(65)
const point = publicKey.subarray(1)

/** The address of the signer, or null if r and s match no public key. */
export const recover: Recover = (hash, signature, recoveryId) => {
  try {
    secp256k1.ecdsaRecover(signature, recoveryId, hash, false, publicKey)
  } catch {
    return null
  }
  return keccak(point).subarray(12)
}

/** Signs a digest of 32 bytes: r, s and v, with a low s. */
export function sign(digest: Uint8Array, privateKey: Uint8Array): Uint8Array {
  const { signature, recid } = secp256k1.ecdsaSign(digest, privateKey)
  return Uint8Array.from([...signature, 27 + recid])
}

/** Throws if the key is not a private key of the curve. */
export function addressOf(privateKey: Uint8Array): Uint8Array {
  secp256k1.publicKeyCreate(privateKey, false, publicKey)
  return keccak(point).slice(12)
}

/** Keccak in WebAssembly and native public-key recovery, fast enough for every order. */
import { createKeccak } from 'hash-wasm'
import secp256k1 from 'secp256k1'
import type { Keccak, Recover } from '../../domain/orders/order-hash.ts'

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

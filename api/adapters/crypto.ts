/** Keccak and public-key recovery: the fast ones, for the path of every order. */
import { createKeccak } from 'hash-wasm'
import secp256k1 from 'secp256k1'
import type { Keccak, Recover } from '../../domain/orders/order-hash.ts'

/** One for all calls: they are synchronous, so they never meet. */
const hasher = await createKeccak(256)

export const keccak: Keccak = (message) => hasher.init().update(message).digest('binary')

const publicKey = new Uint8Array(65)
const point = publicKey.subarray(1)

/** The address that signed, or null where r and s fit no key. */
export const recover: Recover = (hash, signature, recoveryId) => {
  try {
    secp256k1.ecdsaRecover(signature, recoveryId, hash, false, publicKey)
  } catch {
    return null
  }
  return keccak(point).subarray(12)
}

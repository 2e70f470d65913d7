/**
 * Default signer on the package `secp256k1`, if the program has installed it: libsecp256k1 signs faster than JavaScript.
 */
import { type Curve, nobleCurve, privateKeySigner } from './private-key-signer.ts'
import type { AccountSigner } from './signer.ts'

interface Secp256k1 {
  ecdsaSign(
    hash: Uint8Array,
    privateKey: Uint8Array,
  ): { readonly signature: Uint8Array; readonly recid: number }
}

/** A variable, so that bundlers and packages without the native library do not resolve the import. */
const PACKAGE = 'secp256k1'

async function nativeCurve(): Promise<Curve | null> {
  try {
    const loaded = (await import(PACKAGE)) as { default: Secp256k1 }
    return (hash, privateKey) => {
      const { signature, recid } = loaded.default.ecdsaSign(hash, privateKey)
      return { rs: signature, recoveryId: recid }
    }
  } catch {
    return null
  }
}

/** Uses the default curve if `secp256k1` is not installed. Both produce the same signatures. */
export const nativeSigner = async (privateKey: string): Promise<AccountSigner> =>
  privateKeySigner(privateKey, (await nativeCurve()) ?? nobleCurve)

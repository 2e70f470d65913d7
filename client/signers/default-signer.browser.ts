/** In browsers a wallet signs: the curve, a quarter of the client, is included only where the program imports it. */
import type { AccountSigner } from './signer.ts'

export const defaultSigner = (_privateKey: string): AccountSigner => {
  throw new TypeError(
    "in a browser pass a signer in place of privateKey: a wallet, or privateKeySigner(key) of 'clearbatch/signing'",
  )
}

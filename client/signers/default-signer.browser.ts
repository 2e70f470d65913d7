/**
 * Default signer in browsers, where a wallet signs.
 * The curve, a quarter of the client, is included only if the program imports it.
 */
import type { AccountSigner } from './signer.ts'

export const defaultSigner = (_privateKey: string): AccountSigner => {
  throw new TypeError(
    "in a browser pass a signer in place of privateKey: a wallet, or privateKeySigner(key) of 'clearbatch/signing'",
  )
}

/** What signs for the client option `privateKey`. Bundlers for browsers take `default-signer.browser.ts` in its place. */
import { privateKeySigner } from './private-key-signer.ts'
import type { AccountSigner } from './signer.ts'

export const defaultSigner = (privateKey: string): AccountSigner => privateKeySigner(privateKey)

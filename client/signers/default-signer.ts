/** Signer for the client option `privateKey`. Browser bundlers use `default-signer.browser.ts` instead. */
import { privateKeySigner } from './private-key-signer.ts'
import type { AccountSigner } from './signer.ts'

export const defaultSigner = (privateKey: string): AccountSigner => privateKeySigner(privateKey)

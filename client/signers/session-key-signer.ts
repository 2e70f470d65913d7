/**
 * Signs with a session key.
 * Separate from `signing.ts`, so that a browser with another signer does not load the default signer.
 */
import { privateKeySigner } from './private-key-signer.ts'
import type { Signer } from './signer.ts'

/** Signer of a session key: it signs orders and has no account of its own. */
export const sessionSigner = (privateKey: string): Signer => privateKeySigner(privateKey)

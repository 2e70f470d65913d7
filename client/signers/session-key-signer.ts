/** Signs with a session key. Apart from `signing.ts`, so that a browser that brings its own signer does not load the default one. */
import { privateKeySigner } from './private-key-signer.ts'
import type { Signer } from './signer.ts'

/** A session key's signer: signs orders and has no account of its own. */
export const sessionSigner = (privateKey: string): Signer => privateKeySigner(privateKey)

/** The authenticated account of a request. */

import type { CredentialKind, KeyScope } from '../../db/credentials-schema.ts'
import type { Address } from '../../domain/units.ts'

export interface Caller {
  readonly userId: number
  readonly address: Address
  /** `read`: every endpoint that takes effect refuses the caller. An identity token always has the scope `trade`. */
  readonly scope: KeyScope
  readonly credential: CredentialKind
  /** When an identity token expires, ms; null for an API key. */
  readonly expiresAt: number | null
  /** Name of the API key; null for an identity token. */
  readonly keyName: string | null
  /** SHA-256 of the API key; null for an identity token. */
  readonly keyHash: Buffer | null
}

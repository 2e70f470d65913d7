/** Tables of credentials. */
import type { Generated } from 'kysely'

/** The keys of each user by name. The key itself is not stored, only its SHA-256. Written by: api. */
export interface ApiKeysTable {
  user_id: number
  name: Generated<string>
  key_hash: Buffer
  prefix: string
  created_at: number
  scope: Generated<KeyScope>
  /** IP addresses and networks from which the key is accepted; null: from all. */
  allowed_addresses: string[] | null
  /** Written at most once a minute; null until the first use. */
  last_used_at: number | null
}

/** `read`: every endpoint with an effect rejects the key. */
export type KeyScope = 'trade' | 'read'

/** Credential that authenticates a request. */
export type CredentialKind = 'api_key' | 'identity_token'

/** Texts that the owner's wallet signs once, for one action. At most a few per account and kind of credential. Written by: api. */
export interface AuthChallengesTable {
  challenge_id: string
  user_id: number
  /** Credential that requested the challenge. The challenge may be used with either kind. */
  credential: CredentialKind
  action: ChallengeAction
  /** The exact text to sign. */
  message: string
  created_at: number
  expires_at: number
  /** Null until the challenge, or another of the account for the same action, is used. */
  used_at: number | null
}

export type ChallengeAction = 'rotate_api_key' | 'create_api_key'

/** The key of the salts of proofs: one row, generated when the database is created. Never logged, never sent. Written by: none. */
export interface ProofKeysTable {
  is_only: Generated<true>
  key: Buffer
}

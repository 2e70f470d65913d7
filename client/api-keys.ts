/** Creates and replaces an account's API keys through a challenge that the owner's wallet signs. */
import { createHttpSession } from './http-session.ts'
import type { SignInWallet } from './sign-in.ts'

export type KeyScope = 'trade' | 'read'

/** A text that the owner's wallet signs once, as a personal message. */
export interface Challenge {
  readonly challenge_id: string
  readonly action: 'rotate_api_key' | 'create_api_key'
  readonly message: string
  readonly expires_at: string
}

export interface RotatedKey {
  /** The key is returned once; the exchange stores only its hash. */
  readonly api_key: string
  readonly user_id: number
  readonly prefix: string
  readonly scope: KeyScope
  readonly allowed_addresses: readonly string[] | null
  readonly created_at: string
}

export interface CreatedApiKey extends RotatedKey {
  readonly name: string
}

export interface RotateOptions {
  readonly baseUrl: string
  /** A valid credential of the account: `Key <api key>` or `Bearer <access token>`. */
  readonly authorization: string
  /** The owner's wallet; a session key is refused. */
  readonly wallet: SignInWallet
  /** If absent, the key may trade. */
  readonly scope?: KeyScope
  /** IP addresses and networks from which the key is accepted; if absent, all are accepted. */
  readonly allowedAddresses?: readonly string[]
}

export interface CreateOptions extends RotateOptions {
  /** Name: lower-case letters, digits, hyphens and underscores; at most 32 characters. */
  readonly name: string
}

/**
 * Replaces the API key `default`; the current key is valid until then. If the last response is lost, so is the new key:
 * call again with an access token.
 */
export const rotateApiKey = (options: RotateOptions): Promise<RotatedKey> =>
  sendSigned(options, 'rotate_api_key', '/v0/me/api-key/rotate', {})

/**
 * Creates a further API key. If the response is lost, revoke the name with `account.revokeApiKey` and create the key again.
 */
export const createApiKey = (options: CreateOptions): Promise<CreatedApiKey> =>
  sendSigned(options, 'create_api_key', '/v0/me/api-keys', { name: options.name })

async function sendSigned<Created>(
  { baseUrl, authorization, wallet, scope, allowedAddresses: allowed_addresses }: RotateOptions,
  action: Challenge['action'],
  path: string,
  fields: object,
): Promise<Created> {
  const http = createHttpSession({ baseUrl, authorization })
  // A repeated challenge is harmless: unused challenges expire.
  const challenge = await http.post<Challenge>('/v0/auth/challenge', { action })
  const signature = await wallet.signMessage(challenge.message)
  const body = { ...fields, challenge_id: challenge.challenge_id, signature, scope, allowed_addresses }
  return http.send<Created>({ method: 'POST', path, body, idempotent: false })
}

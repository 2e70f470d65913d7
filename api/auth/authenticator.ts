/** Authenticates the caller of a request by the API key or identity token in its Authorization header. */

import { API_KEYS_CHANNEL } from '../../db/api-keys.ts'
import type { Db } from '../../db/client.ts'
import type { Address } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import { ApiError } from '../errors.ts'
import type { Notifications } from '../ports.ts'
import type { VerifyBearer } from './bearer.ts'
import type { Caller } from './caller.ts'
import { hashApiKey } from './credentials.ts'

export type Authenticate = (authorization: string | undefined) => Promise<Caller>

export interface AuthenticatorPorts {
  readonly db: Db
  readonly clock: Clock
  readonly notifications: Notifications
  /** Null if no identity provider is configured. */
  readonly verifyBearer: VerifyBearer | null
}

/** A NOTIFY drops a replaced key at once; this bounds how long it stays valid if the notification is lost. */
const CACHE_MS = 15_000
const CACHE_SIZE = 100_000
const UUID = /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i

function split(authorization: string | undefined): [scheme: string, credential: string] {
  if (!authorization) throw new ApiError('CREDENTIAL_MISSING', { field: 'authorization' })
  const [scheme = '', credential = '', ...rest] = authorization.trim().split(/\s+/)
  if (credential === '' || rest.length > 0)
    throw new ApiError('CREDENTIAL_MALFORMED', { field: 'authorization' })
  return [scheme.toLowerCase(), credential]
}

export function createAuthenticator({
  db,
  clock,
  notifications,
  verifyBearer,
}: AuthenticatorPorts): Authenticate {
  const cache = new Map<string, { readonly caller: Caller; readonly until: number }>()
  const forget = (userId: number): void => {
    for (const [key, { caller }] of cache) if (caller.userId === userId) cache.delete(key)
  }
  notifications.on(API_KEYS_CHANNEL, (userId) => forget(Number(userId)))
  notifications.onLost(() => cache.clear())

  const byApiKey = async (key: string): Promise<Caller> => {
    const keyHash = hashApiKey(key)
    const cacheKey = keyHash.toString('latin1')
    const known = cache.get(cacheKey)
    if (known && known.until > clock.now()) return known.caller
    const row = await db
      .selectFrom('api_keys as k')
      .innerJoin('users as u', 'u.user_id', 'k.user_id')
      .select(['u.user_id', 'u.address'])
      .where('k.key_hash', '=', keyHash)
      .executeTakeFirst()
    if (!row) throw new ApiError('API_KEY_UNKNOWN', { field: 'authorization' })
    const caller = { userId: row.user_id, address: row.address as Address }
    if (cache.size >= CACHE_SIZE) cache.clear()
    // Without a listener a replaced key would stay in the cache.
    if (notifications.isListening()) cache.set(cacheKey, { caller, until: clock.now() + CACHE_MS })
    return caller
  }

  return async (authorization) => {
    const [scheme, credential] = split(authorization)
    if (scheme === 'key') return byApiKey(credential)
    if (scheme !== 'bearer')
      throw new ApiError('CREDENTIAL_MALFORMED', { field: 'authorization', received: scheme })
    if (UUID.test(credential)) throw new ApiError('BEARER_UUID_REFUSED', { field: 'authorization' })
    if (verifyBearer === null) throw new ApiError('BEARER_NOT_CONFIGURED', { field: 'authorization' })
    return verifyBearer(credential)
  }
}

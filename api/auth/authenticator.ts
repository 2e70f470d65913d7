/** Authenticates the caller of a request by the API key or identity token in its Authorization header. */

import { API_KEYS_CHANNEL, BETWEEN_USES_MS } from '../../db/api-keys.ts'
import type { Db } from '../../db/client.ts'
import type { Address } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import { ApiError } from '../errors.ts'
import type { Notifications } from '../ports.ts'
import { type AllowsAddress, allowsAddress } from './address-list.ts'
import type { Bearer } from './bearer.ts'
import type { Caller } from './caller.ts'
import { hashText, isApiKey } from './credentials.ts'
import type { FailedCredentials } from './failed-credentials.ts'
import type { KeyUses } from './key-uses.ts'

/** Credentials of a request: its Authorization header and its network address. */
export interface Presented {
  readonly authorization: string | undefined
  readonly address: string
}

export interface Authenticate {
  (presented: Presented): Promise<Caller>
  /** The caller, if the credential can be checked without waiting; null otherwise, or if it is refused. */
  known(presented: Presented): Caller | null
}

export interface AuthenticatorPorts {
  readonly db: Db
  readonly clock: Clock
  readonly notifications: Notifications
  /** Null if no identity provider is configured. */
  readonly bearer: Bearer | null
  readonly failures: FailedCredentials
  readonly keyUses: KeyUses
}

/** A NOTIFY drops a replaced or revoked key at once; this bounds how long it stays valid if the notification is lost. */
const CACHE_MS = 15_000
/** Keys in the cache, at most. The oldest are dropped first. */
const CACHE_SIZE = 100_000
const UUID = /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i

interface KnownKey {
  readonly caller: Caller & { readonly keyHash: Buffer }
  readonly allows: AllowsAddress
  readonly until: number
  /** Time of the next recorded use. */
  noteAt: number
}

const partsOf = (authorization: string): string[] => authorization.trim().split(/\s+/)

function split(authorization: string | undefined): [scheme: string, credential: string] {
  if (!authorization) throw new ApiError('CREDENTIAL_MISSING', { field: 'authorization' })
  const [scheme = '', credential = '', ...rest] = partsOf(authorization)
  if (credential === '' || rest.length > 0)
    throw new ApiError('CREDENTIAL_MALFORMED', { field: 'authorization' })
  return [scheme.toLowerCase(), credential]
}

/** Cache of API keys in use, by `hashText`. A notification that a key was replaced or revoked drops it. */
function createKeyCache({ db, clock, notifications }: AuthenticatorPorts) {
  const cache = new Map<string, KnownKey>()
  // Counts replaced and revoked keys: a row that was read before a notification must not enter the cache after it.
  let replaced = 0
  notifications.on(API_KEYS_CHANNEL, (userId) => {
    replaced++
    for (const [key, { caller }] of cache) if (caller.userId === Number(userId)) cache.delete(key)
  })
  notifications.onLost(() => {
    replaced++
    cache.clear()
  })
  const load = async (keyHash: Buffer, noteAt: number): Promise<KnownKey | null> => {
    const row = await db
      .selectFrom('api_keys as k')
      .innerJoin('users as u', 'u.user_id', 'k.user_id')
      .select(['u.user_id', 'u.address', 'k.name', 'k.scope', 'k.allowed_addresses'])
      .where('k.key_hash', '=', keyHash)
      .executeTakeFirst()
    if (!row) return null
    const { user_id: userId, address, name: keyName, scope } = row
    const terms = { scope, credential: 'api_key', expiresAt: null, keyName, keyHash } as const
    const caller = { userId, address: address as Address, ...terms }
    const allows = allowsAddress(row.allowed_addresses)
    return { caller, allows, noteAt, until: clock.now() + CACHE_MS }
  }
  return {
    /** The cached key; undefined if it must be looked up. */
    known(hash: string): KnownKey | undefined {
      const found = cache.get(hash)
      return found !== undefined && found.until > clock.now() ? found : undefined
    },
    /** Whether the key was valid recently. Looking it up again then does not count as a guess. */
    wasKnown: (hash: string): boolean => cache.has(hash),
    /** Null if there is no such key. */
    async lookUp(hash: string): Promise<KnownKey | null> {
      const before = replaced
      // Caches only while notifications arrive, before and after the read: otherwise a replaced key would stay in the
      // cache.
      const isHeard = notifications.isListening()
      const loaded = await load(Buffer.from(hash, 'binary'), cache.get(hash)?.noteAt ?? 0)
      cache.delete(hash)
      if (loaded === null || replaced !== before || !isHeard) return loaded
      if (cache.size >= CACHE_SIZE) cache.delete(cache.keys().next().value as string)
      cache.set(hash, loaded)
      return loaded
    },
  }
}

export function createAuthenticator(ports: AuthenticatorPorts): Authenticate {
  const { clock, bearer, failures, keyUses } = ports
  const keys = createKeyCache(ports)

  /** Runs `verify` and counts a refused credential. */
  async function attempt<Result>(address: string, verify: () => Promise<Result>): Promise<Result> {
    failures.check(address)
    try {
      return await verify()
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) await failures.count(address)
      throw error
    }
  }

  async function lookUp(key: string, hash: string): Promise<KnownKey> {
    const found = isApiKey(key) ? await keys.lookUp(hash) : null
    if (found === null) throw new ApiError('API_KEY_UNKNOWN', { field: 'authorization' })
    return found
  }

  /** Records the use of a key. */
  function use(found: KnownKey): Caller {
    const now = clock.now()
    const { userId, keyHash } = found.caller
    if (now >= found.noteAt) {
      found.noteAt = now + BETWEEN_USES_MS
      keyUses.note({ userId, keyHash, at: now })
    }
    return found.caller
  }

  async function byApiKey(key: string, address: string): Promise<Caller> {
    const hash = hashText(key)
    const found =
      keys.known(hash) ??
      (await (keys.wasKnown(hash) ? lookUp(key, hash) : attempt(address, () => lookUp(key, hash))))
    if (!found.allows(address))
      throw new ApiError('ADDRESS_NOT_ALLOWED', { received: address, expected: 'an address of its list' })
    return use(found)
  }

  function knownKey(key: string, address: string): Caller | null {
    const found = keys.known(hashText(key))
    return found?.allows(address) ? use(found) : null
  }

  async function verifyToken(token: string): Promise<Caller> {
    if (UUID.test(token)) throw new ApiError('BEARER_UUID_REFUSED', { field: 'authorization' })
    if (bearer === null) throw new ApiError('BEARER_NOT_CONFIGURED', { field: 'authorization' })
    return bearer.verify(token)
  }

  async function authenticate({ authorization, address }: Presented): Promise<Caller> {
    const [scheme, credential] = split(authorization)
    if (scheme === 'key') return byApiKey(credential, address)
    // The error does not repeat the scheme, because it may be a key sent without a scheme.
    if (scheme !== 'bearer') throw new ApiError('CREDENTIAL_MALFORMED', { field: 'authorization' })
    return bearer?.known(credential) ?? attempt(address, () => verifyToken(credential))
  }

  return Object.assign(authenticate, {
    known({ authorization, address }: Presented): Caller | null {
      const [scheme = '', credential, ...rest] = partsOf(authorization ?? '')
      if (credential === undefined || rest.length > 0) return null
      switch (scheme.toLowerCase()) {
        case 'key':
          return knownKey(credential, address)
        case 'bearer':
          return bearer?.known(credential) ?? null
        default:
          return null
      }
    },
  })
}

/** Verifies identity tokens: JWTs of the identity provider, checked against its published keys. */
import { hash } from 'node:crypto'
import {
  createRemoteJWKSet,
  customFetch,
  decodeProtectedHeader,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from 'jose'
import type { Address } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { BearerConfig } from '../config.ts'
import { ApiError } from '../errors.ts'
import type { Caller } from './caller.ts'
import type { LogIn } from './log-in.ts'

export interface Bearer {
  /** The caller of a token that was verified a moment ago. */
  known(token: string): Caller | undefined
  verify(token: string): Promise<Caller>
}

/** Asymmetric algorithms only, so that a published key can never be used as a shared secret. */
const ALGORITHMS = ['ES256', 'ES384', 'EdDSA', 'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']
/** Difference between the provider's clock and ours that `exp`, `nbf` and `iat` may have. */
export const CLOCK_TOLERANCE_S = 5
/** Least time between two requests for the provider's keys because of a key id that they lack. */
const UNKNOWN_KEY_COOLDOWN_MS = 30_000
/** Keys are requested again after this time, so that a withdrawn key ends. */
const KEYS_MAX_AGE_MS = 600_000
const PROVIDER_TIMEOUT_MS = 3_000
/** Pause after a failed request for the provider's keys. */
const PROVIDER_PAUSE_MS = 2_000
const MAX_KEY_SET_LENGTH = 256 * 1024
/** How long a verified token is not verified again. */
const CACHE_MS = 15_000
/** Verified tokens in the cache, at most. The oldest are dropped first. */
const CACHE_SIZE = 10_000

const invalid = (field: string | undefined, expected: string): ApiError =>
  new ApiError('BEARER_INVALID', { field: field ?? 'authorization', expected })

function refusal(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof errors.JWTExpired)
    return new ApiError('BEARER_EXPIRED', { field: 'exp', expected: 'a time in the future' })
  if (error instanceof errors.JWTClaimValidationFailed) {
    return error.claim === 'nbf' && error.reason === 'check_failed'
      ? new ApiError('BEARER_NOT_YET_VALID', { field: 'nbf', expected: 'a time in the past' })
      : invalid(error.claim, error.reason)
  }
  if (error instanceof errors.JWKSNoMatchingKey)
    return new ApiError('BEARER_KEY_UNKNOWN', { field: 'kid', expected: "one of the provider's keys" })
  const isTokenError =
    error instanceof errors.JOSEError &&
    !(error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid)
  // All other errors come from the request to the provider, not from the token.
  const isUnreachable = !isTokenError || error.code === 'ERR_JOSE_GENERIC'
  return isUnreachable
    ? new ApiError('IDENTITY_PROVIDER_UNAVAILABLE', {}, '2')
    : invalid(undefined, error.code)
}

/** Checks the token's header before a key lookup, so that a malformed token causes no request to the provider. */
function checkHeader(token: string): void {
  let header: ReturnType<typeof decodeProtectedHeader>
  try {
    header = decodeProtectedHeader(token)
  } catch {
    throw invalid(undefined, 'a JWT in compact form')
  }
  const { alg, kid } = header
  if (typeof alg !== 'string' || !ALGORITHMS.includes(alg))
    throw new ApiError('BEARER_ALGORITHM', { field: 'alg', expected: ALGORITHMS, received: alg ?? null })
  if (typeof kid !== 'string' || kid === '')
    throw new ApiError('BEARER_KEY_UNKNOWN', {
      field: 'kid',
      expected: "one of the provider's keys",
      received: null,
    })
}

function walletOf(payload: JWTPayload, claim: string): Address {
  const wallet = payload[claim]
  if (typeof wallet === 'string' && /^0x[0-9a-fA-F]{40}$/.test(wallet)) return wallet.toLowerCase() as Address
  throw invalid(claim, 'a wallet address')
}

/** The provider's keys. `jose` caches them, shares concurrent requests, and waits after an unknown key id. */
function providerKeys(url: string, clock: Clock): JWTVerifyGetKey {
  let awayUntil = 0
  const fetchKeys = async (target: string, options: RequestInit): Promise<Response> => {
    if (clock.now() < awayUntil) throw new Error('the last request for the keys failed')
    try {
      const response = await fetch(target, options)
      const text = await response.text()
      if (!response.ok || text.length > MAX_KEY_SET_LENGTH) throw new Error(`status ${response.status}`)
      return Response.json(JSON.parse(text))
    } catch (error) {
      awayUntil = clock.now() + PROVIDER_PAUSE_MS
      throw error
    }
  }
  return createRemoteJWKSet(new URL(url), {
    cooldownDuration: UNKNOWN_KEY_COOLDOWN_MS,
    cacheMaxAge: KEYS_MAX_AGE_MS,
    timeoutDuration: PROVIDER_TIMEOUT_MS,
    [customFetch]: fetchKeys,
  })
}

export function createBearer(logIn: LogIn, clock: Clock, config: BearerConfig): Bearer {
  const keys = providerKeys(config.jwksUrl, clock)
  const { issuer, audience, walletClaim } = config
  const requiredClaims = ['exp', walletClaim]
  const options = {
    issuer,
    audience,
    algorithms: ALGORITHMS,
    requiredClaims,
    clockTolerance: CLOCK_TOLERANCE_S,
  }
  const verified = new Map<string, { readonly caller: Caller; readonly until: number }>()
  const nameOf = (token: string): string => hash('sha256', token, 'base64')

  async function payloadOf(token: string, now: number): Promise<JWTPayload> {
    const { payload } = await jwtVerify(token, keys, { ...options, currentDate: new Date(now) })
    if (payload.iat !== undefined && payload.iat > now / 1000 + CLOCK_TOLERANCE_S)
      throw new ApiError('BEARER_NOT_YET_VALID', { field: 'iat', expected: 'a time in the past' })
    return payload
  }

  return {
    known(token) {
      const found = verified.get(nameOf(token))
      return found !== undefined && found.until > clock.now() ? found.caller : undefined
    },
    async verify(token) {
      checkHeader(token)
      const now = clock.now()
      const payload = await payloadOf(token, now).catch((error: unknown) => {
        throw refusal(error)
      })
      const address = walletOf(payload, walletClaim)
      const userId = await logIn(address)
      const expiresAt = (payload.exp as number) * 1000
      const terms = { scope: 'trade', credential: 'identity_token', expiresAt } as const
      const caller: Caller = { userId, address, ...terms, keyName: null, keyHash: null }
      const until = Math.min(now + CACHE_MS, expiresAt)
      const name = nameOf(token)
      verified.delete(name)
      if (verified.size >= CACHE_SIZE) verified.delete(verified.keys().next().value as string)
      verified.set(name, { caller, until })
      return caller
    },
  }
}

/** Verifies identity tokens: JWTs of the identity provider, checked against its published keys. */
import { createRemoteJWKSet, errors, type JWTPayload, jwtVerify } from 'jose'
import type { Db } from '../../db/client.ts'
import { appendRows, lockShard } from '../../db/journal.ts'
import { createUsers, findUsers } from '../../db/users.ts'
import { ACCOUNTS_SHARD } from '../../domain/journal/journal-row.ts'
import type { Address } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { BearerConfig } from '../config.ts'
import { ApiError } from '../errors.ts'
import type { Caller } from './caller.ts'

export type VerifyBearer = (token: string) => Promise<Caller>

/** Asymmetric algorithms only, so that a published key can never be used as a shared secret. */
const ALGORITHMS = ['ES256', 'ES384', 'EdDSA', 'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']

function refusal(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof errors.JWTExpired)
    return new ApiError('BEARER_INVALID', { field: 'exp', expected: 'a time in the future' })
  if (error instanceof errors.JWTClaimValidationFailed) {
    return new ApiError('BEARER_INVALID', { field: error.claim, expected: error.reason })
  }
  const isTokenError = error instanceof errors.JOSEError && !(error instanceof errors.JWKSTimeout)
  // All other errors come from the request to the provider, not from the token.
  const isUnreachable = !isTokenError || error.code === 'ERR_JOSE_GENERIC'
  return isUnreachable
    ? new ApiError('IDENTITY_PROVIDER_UNAVAILABLE', {}, '2')
    : new ApiError('BEARER_INVALID', { field: 'authorization', expected: error.code })
}

function walletOf(payload: JWTPayload, claim: string): Address {
  const wallet = payload[claim]
  if (typeof wallet === 'string' && /^0x[0-9a-fA-F]{40}$/.test(wallet)) return wallet.toLowerCase() as Address
  throw new ApiError('BEARER_INVALID', { field: claim, expected: 'a wallet address' })
}

/** The user of a wallet. The first login creates it. */
async function login(db: Db, address: Address, at: number): Promise<number> {
  const known = (await findUsers(db, [address])).get(address)
  if (known !== undefined) return known
  return db.transaction().execute(async (tx) => {
    const shard = await lockShard(tx, ACCOUNTS_SHARD)
    const { users, rows } = await createUsers(tx, [address], at)
    await appendRows(tx, shard, rows)
    return users.get(address) as number
  })
}

export function createBearerVerifier(db: Db, clock: Clock, config: BearerConfig): VerifyBearer {
  const keys = createRemoteJWKSet(new URL(config.jwksUrl))
  const { issuer, audience, walletClaim } = config
  const options = { issuer, audience, algorithms: ALGORITHMS, requiredClaims: ['exp', walletClaim] }
  const userIds = new Map<Address, number>()
  return async (token) => {
    const { payload } = await jwtVerify(token, keys, options).catch((error: unknown) => {
      throw refusal(error)
    })
    const address = walletOf(payload, walletClaim)
    const userId = userIds.get(address) ?? (await login(db, address, clock.now()))
    userIds.set(address, userId)
    return { userId, address }
  }
}

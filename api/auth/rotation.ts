/** Replaces the caller's API key: by a challenge that the owner's wallet has signed. */
import { API_KEYS_CHANNEL, type KeyTerms } from '../../db/api-keys.ts'
import type { Db } from '../../db/client.ts'
import type { Clock } from '../../service/clock.ts'
import { ApiError } from '../errors.ts'
import type { AcceptsSignature, Notifications } from '../ports.ts'
import { verifyWalletSignature } from '../signatures/wallet-signature.ts'
import type { Caller } from './caller.ts'
import type { Challenges } from './challenges.ts'
import { createApiKey } from './credentials.ts'

export interface RotationRequest extends KeyTerms {
  readonly challengeId: string
  readonly signature: string
}

export interface CreatedKey {
  readonly apiKey: string
  readonly createdAt: number
}

export type RotateKey = (caller: Caller, request: RotationRequest) => Promise<CreatedKey>

export interface RotationPorts {
  readonly db: Db
  readonly clock: Clock
  readonly challenges: Challenges
  readonly notifications: Pick<Notifications, 'announce'>
  /** Null where contract wallets cannot be asked. */
  readonly acceptsSignature: AcceptsSignature | null
}

/** The checks are ordered by their cost: the challenge is one row, the signature is recovered last. */
export function createRotation(ports: RotationPorts): RotateKey {
  const { db, clock, challenges, notifications, acceptsSignature } = ports
  return async (caller, { challengeId, signature, scope, allowed_addresses }) => {
    const challenge = await challenges.open(caller, challengeId, 'rotate_api_key')
    const { message: text } = challenge
    await verifyWalletSignature({ owner: caller.address, text, signature }, acceptsSignature)
    const createdAt = clock.now()
    let isCommitting = false
    const apiKey = await db
      .transaction()
      .execute(async (tx) => {
        if (!(await challenges.take(tx, challenge))) return null
        const key = await createApiKey(tx, caller.userId, { scope, allowed_addresses }, createdAt)
        isCommitting = true
        return key
      })
      .catch((error: unknown) => {
        // Otherwise another attempt with the challenge may be committing: an error of the database leaves the outcome unknown as well.
        throw isCommitting ? new ApiError('OUTCOME_UNKNOWN') : error
      })
    if (apiKey !== null) {
      // The caller may use the old key as soon as it has the answer.
      notifications.announce(API_KEYS_CHANNEL, String(caller.userId))
      return { apiKey, createdAt }
    }
    // Another request was faster, or the challenge expired while its signature was checked: this throws the reason.
    await challenges.open(caller, challengeId, 'rotate_api_key')
    throw new ApiError('CHALLENGE_USED', { field: 'challenge_id' })
  }
}

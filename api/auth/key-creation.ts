/**
 * Creates API keys by a challenge that the owner's wallet has signed. A key replaces the key named `default`, or is
 * additional.
 */
import {
  API_KEYS_CHANNEL,
  addApiKey,
  DEFAULT_KEY,
  type KeyTerms,
  MOST_KEYS,
  replaceApiKey,
} from '../../db/api-keys.ts'
import type { Db, Tx } from '../../db/client.ts'
import type { ChallengeAction } from '../../db/credentials-schema.ts'
import type { Clock } from '../../service/clock.ts'
import { ApiError } from '../errors.ts'
import type { AcceptsSignature, Notifications } from '../ports.ts'
import { verifyWalletSignature } from '../signatures/wallet-signature.ts'
import type { Caller } from './caller.ts'
import type { Challenges } from './challenges.ts'
import { type GeneratedKey, generateApiKey } from './credentials.ts'

export interface RotationRequest extends KeyTerms {
  readonly challengeId: string
  readonly signature: string
}

export interface CreationRequest extends RotationRequest {
  readonly name: string
}

export interface CreatedKey {
  readonly apiKey: string
  readonly createdAt: number
}

export interface KeyCreation {
  /** Creates the key named `default` in place of the current one. */
  rotate(caller: Caller, request: RotationRequest): Promise<CreatedKey>
  /** Creates a further key. Throws API_KEY_NAME_TAKEN and API_KEY_LIMIT, and the challenge stays open. */
  create(caller: Caller, request: CreationRequest): Promise<CreatedKey>
}

export interface KeyCreationPorts {
  readonly db: Db
  readonly clock: Clock
  readonly challenges: Challenges
  readonly notifications: Pick<Notifications, 'announce'>
  /** Null without a node: signatures of contract wallets cannot be verified. */
  readonly acceptsSignature: AcceptsSignature | null
}

async function add(tx: Tx, userId: number, { stored }: GeneratedKey): Promise<void> {
  const addition = await addApiKey(tx, userId, stored)
  if (addition === 'taken')
    throw new ApiError('API_KEY_NAME_TAKEN', {
      field: 'name',
      expected: 'a name that no key of the account has',
      received: stored.name,
    })
  if (addition === 'full')
    throw new ApiError('API_KEY_LIMIT', {
      field: 'name',
      expected: `at most ${MOST_KEYS} keys: \`${DEFAULT_KEY}\` and ${MOST_KEYS - 1} others`,
      received: stored.name,
    })
}

/** The checks are ordered by their cost: the challenge is one row, the signature is recovered last. */
export function createKeyCreation(ports: KeyCreationPorts): KeyCreation {
  const { db, clock, challenges, notifications, acceptsSignature } = ports

  async function creating(
    caller: Caller,
    { challengeId, signature, name, scope, allowed_addresses }: CreationRequest,
    action: ChallengeAction,
    store: (tx: Tx, key: GeneratedKey) => Promise<void>,
  ): Promise<CreatedKey> {
    const challenge = await challenges.open(caller, challengeId, action)
    const { message: text } = challenge
    await verifyWalletSignature({ owner: caller.address, text, signature }, acceptsSignature)
    const createdAt = clock.now()
    let isCommitting = false
    const apiKey = await db
      .transaction()
      .execute(async (tx) => {
        if (!(await challenges.take(tx, challenge))) return null
        const key = generateApiKey(name, { scope, allowed_addresses }, createdAt)
        await store(tx, key)
        isCommitting = true
        return key.apiKey
      })
      .catch((error: unknown) => {
        // After an error during the commit the key may exist. Earlier errors of the database have an unknown outcome, too, because another attempt may be committing.
        throw isCommitting ? new ApiError('OUTCOME_UNKNOWN') : error
      })
    if (apiKey !== null) return { apiKey, createdAt }
    // Another request was faster, or the challenge expired while its signature was checked: this throws the reason.
    await challenges.open(caller, challengeId, action)
    throw new ApiError('CHALLENGE_USED', { field: 'challenge_id' })
  }

  return {
    async rotate(caller, request) {
      const { userId } = caller
      const created = await creating(
        caller,
        { ...request, name: DEFAULT_KEY },
        'rotate_api_key',
        (tx, { stored }) => replaceApiKey(tx, userId, stored),
      )
      // The caller may use the old key as soon as it has the answer.
      notifications.announce(API_KEYS_CHANNEL, String(userId))
      return created
    },
    create: (caller, request) =>
      creating(caller, request, 'create_api_key', (tx, key) => add(tx, caller.userId, key)),
  }
}

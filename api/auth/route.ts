/** The caller's own account: its API keys, which signed challenges create, and its limits. */
import type { FastifyRequest } from 'fastify'
import { API_KEYS_CHANNEL, deleteApiKey, type KeyTerms, MOST_KEYS } from '../../db/api-keys.ts'
import type { Db } from '../../db/client.ts'
import { ApiError } from '../errors.ts'
import { type Access, callerOf, type LimitsOf } from '../http/access.ts'
import type { App } from '../http/types.ts'
import type { Notifications } from '../ports.ts'
import { isoTime } from '../wire/amounts.ts'
import { isNetwork } from './address-list.ts'
import type { Challenges } from './challenges.ts'
import { PREFIX_LENGTH } from './credentials.ts'
import type { KeyCreation } from './key-creation.ts'
import { apiKeysOf, defaultKey } from './query.ts'
import {
  ApiKeyBody,
  ApiKeyParams,
  ApiKeys,
  ChallengeAnswer,
  ChallengeBody,
  CreatedApiKey,
  LimitsAnswer,
  Me,
  NETWORK_EXPECTED,
  Revoked,
  RotateAnswer,
  RotateBody,
} from './schema.ts'

export interface AuthPorts {
  readonly db: Db
  readonly challenges: Challenges
  readonly keyCreation: KeyCreation
  readonly notifications: Pick<Notifications, 'announce'>
  readonly limitsOf: LimitsOf
  readonly costOf: Access['costOf']
}

const tags = ['authentication']

export function authRoutes(app: App, ports: AuthPorts): void {
  challengeRoute(app, ports)
  rotateRoute(app, ports)
  apiKeyRoutes(app, ports)
  meRoutes(app, ports)
}

function challengeRoute(app: App, { challenges }: AuthPorts): void {
  app.post(
    '/v0/auth/challenge',
    {
      config: { access: 'user', bucket: 'auth' },
      schema: {
        tags,
        summary: "Get a text for the owner's wallet to sign",
        description:
          'The text is valid for five minutes, once, for one action of the account. At most a few per kind of credential are open.',
        operationId: 'createChallenge',
        body: ChallengeBody,
        response: { 200: ChallengeAnswer },
      },
    },
    async (request) => {
      const challenge = await challenges.create(callerOf(request), request.body.action)
      const { challenge_id, action, message, expires_at } = challenge
      return { challenge_id, action, message, expires_at: isoTime(expires_at) }
    },
  )
}

function termsOf({ scope = 'trade', allowed_addresses = null }: Partial<KeyTerms>): KeyTerms {
  const wrong = allowed_addresses?.find((network) => !isNetwork(network))
  if (wrong !== undefined)
    throw new ApiError('INVALID_FIELD', {
      field: 'allowed_addresses',
      expected: NETWORK_EXPECTED,
      received: wrong,
    })
  return { scope, allowed_addresses }
}

const CREATION_ERRORS = [
  'SIGNATURE_V',
  'SIGNATURE_HIGH_S',
  'SIGNATURE_UNRECOVERABLE',
  'WALLET_SIGNATURE_FORMAT',
  'WALLET_SIGNATURE_MISMATCH',
  'CHALLENGE_UNKNOWN',
  'CHALLENGE_EXPIRED',
  'CHALLENGE_USED',
  'OUTCOME_UNKNOWN',
  'WALLET_CHECK_UNAVAILABLE',
] as const

function rotateRoute(app: App, { keyCreation }: AuthPorts): void {
  app.post(
    '/v0/me/api-key/rotate',
    {
      config: {
        access: 'user',
        bucket: 'auth',
        sends: ['Cache-Control'],
        errors: CREATION_ERRORS,
      },
      schema: {
        tags,
        summary: 'Create the API key of the account that is named `default`, in place of the current one',
        description:
          'Other keys stay valid. The current key is valid until the new one is stored, and no longer. If the answer is lost, the new key is lost with it: request ' +
          'another challenge, with an identity token.',
        operationId: 'rotateApiKey',
        body: RotateBody,
        response: { 200: RotateAnswer },
      },
    },
    async (request, reply): Promise<RotateAnswer> => {
      const { challenge_id: challengeId, signature, ...rest } = request.body
      const terms = termsOf(rest)
      const caller = callerOf(request)
      const { apiKey, createdAt } = await keyCreation.rotate(caller, { challengeId, signature, ...terms })
      reply.header('cache-control', 'no-store')
      const created = { api_key: apiKey, user_id: caller.userId, prefix: apiKey.slice(0, PREFIX_LENGTH) }
      return { ...created, ...terms, created_at: isoTime(createdAt) }
    },
  )
}

function apiKeyRoutes(app: App, { db, keyCreation, notifications }: AuthPorts): void {
  app.get(
    '/v0/me/api-keys',
    {
      config: { access: 'user' },
      schema: {
        tags,
        summary: "List the account's API keys",
        operationId: 'listApiKeys',
        response: { 200: ApiKeys },
      },
    },
    async (request) => ({ api_keys: await apiKeysOf(db, callerOf(request).userId) }),
  )
  app.post(
    '/v0/me/api-keys',
    {
      config: {
        access: 'user',
        bucket: 'auth',
        sends: ['Cache-Control'],
        errors: [...CREATION_ERRORS, 'API_KEY_NAME_TAKEN', 'API_KEY_LIMIT'],
      },
      schema: {
        tags,
        summary: 'Create a further API key of the account',
        description:
          `An account has at most ${MOST_KEYS} keys; one place is reserved for the key named \`default\`. The challenge's action is ` +
          '`create_api_key`. If the answer is lost, the key is lost with it: revoke its name, and create it again.',
        operationId: 'createApiKey',
        body: ApiKeyBody,
        response: { 200: CreatedApiKey },
      },
    },
    async (request, reply): Promise<CreatedApiKey> => {
      const { name, challenge_id: challengeId, signature, ...rest } = request.body
      const terms = termsOf(rest)
      const caller = callerOf(request)
      const { apiKey, createdAt } = await keyCreation.create(caller, {
        name,
        challengeId,
        signature,
        scope: terms.scope,
        allowed_addresses: terms.allowed_addresses,
      })
      reply.header('cache-control', 'no-store')
      return {
        name,
        api_key: apiKey,
        user_id: caller.userId,
        prefix: apiKey.slice(0, PREFIX_LENGTH),
        scope: terms.scope,
        allowed_addresses: terms.allowed_addresses,
        created_at: isoTime(createdAt),
      }
    },
  )
  app.delete(
    '/v0/me/api-keys/:name',
    {
      // In the limit of cancels: it is counted apart from what creates keys, and also while the shared counters are down.
      config: { access: 'user', bucket: 'cancels', errors: ['API_KEY_NOT_FOUND'] },
      schema: {
        tags,
        summary: 'Revoke an API key of the account',
        description:
          'Requests with the key are refused, and live connections that it has authenticated are closed, at once in every process. Dead-man ' +
          'switches that are armed stay armed: those of the closed connections fire after their grace, whatever connections other keys have.',
        operationId: 'revokeApiKey',
        params: ApiKeyParams,
        response: { 200: Revoked },
      },
    },
    async (request) => {
      const { name } = request.params
      const { userId } = callerOf(request)
      if (!(await deleteApiKey(db, userId, name)))
        throw new ApiError('API_KEY_NOT_FOUND', {
          field: 'name',
          expected: 'name of a key of GET /v0/me/api-keys',
          received: name,
        })
      // This process refuses the key before the database's notification arrives.
      notifications.announce(API_KEYS_CHANNEL, String(userId))
      return { success: true as const }
    },
  )
}

function meRoutes(app: App, { db, limitsOf, costOf }: AuthPorts): void {
  const me = async (request: FastifyRequest): Promise<Me> => {
    const { userId, address, credential, scope, keyName } = callerOf(request)
    const [api_key, limits] = await Promise.all([defaultKey(db, userId), limitsOf(request)])
    return {
      user_id: userId,
      address,
      addresses: [address],
      credential,
      scope,
      api_key_name: keyName,
      api_key,
      limits: [...limits],
    }
  }
  app.get(
    '/v0/me',
    {
      config: { access: 'user' },
      schema: {
        tags,
        summary: "Get the caller's account, API key and limits",
        operationId: 'getMe',
        response: { 200: Me },
      },
    },
    me,
  )
  app.get(
    '/v0/me/limits',
    {
      config: { access: 'user' },
      schema: {
        tags,
        summary: "Get the caller's rate limits and what is left of them",
        description:
          'Of the account, all of its credentials together; challenges and rotations (`auth`) of the kind of credential that asks. Each request ' +
          'to this endpoint counts as one read.',
        operationId: 'getMyLimits',
        response: { 200: LimitsAnswer },
      },
    },
    async (request) => {
      const [limits, cost] = await Promise.all([limitsOf(request), costOf(request)])
      return { limits: [...limits], cost }
    },
  )
}

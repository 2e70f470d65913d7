/** The caller's own account: its API key, which a signed challenge replaces, and its limits. */
import type { FastifyRequest } from 'fastify'
import type { KeyTerms } from '../../db/api-keys.ts'
import type { Db } from '../../db/client.ts'
import { ApiError } from '../errors.ts'
import { callerOf, type LimitsOf } from '../http/access.ts'
import type { App } from '../http/types.ts'
import { isoTime } from '../wire/amounts.ts'
import { isNetwork } from './address-list.ts'
import type { Challenges } from './challenges.ts'
import { PREFIX_LENGTH } from './credentials.ts'
import { currentKey } from './query.ts'
import type { RotateKey } from './rotation.ts'
import {
  ChallengeAnswer,
  ChallengeBody,
  LimitsAnswer,
  Me,
  NETWORK_EXPECTED,
  RotateAnswer,
  RotateBody,
} from './schema.ts'

export interface AuthPorts {
  readonly db: Db
  readonly challenges: Challenges
  readonly rotateKey: RotateKey
  readonly limitsOf: LimitsOf
}

const tags = ['authentication']

export function authRoutes(app: App, ports: AuthPorts): void {
  challengeRoute(app, ports)
  rotateRoute(app, ports)
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

function rotateRoute(app: App, { rotateKey }: AuthPorts): void {
  app.post(
    '/v0/me/api-key/rotate',
    {
      config: {
        access: 'user',
        bucket: 'auth',
        sends: ['Cache-Control'],
        errors: [
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
        ],
      },
      schema: {
        tags,
        summary: 'Create the API key of the account, in place of the current one',
        description:
          'The current key is valid until the new one is stored, and no longer. If the answer is lost, the new key is lost with it: request ' +
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
      const { apiKey, createdAt } = await rotateKey(caller, { challengeId, signature, ...terms })
      reply.header('cache-control', 'no-store')
      const created = { api_key: apiKey, user_id: caller.userId, prefix: apiKey.slice(0, PREFIX_LENGTH) }
      return { ...created, ...terms, created_at: isoTime(createdAt) }
    },
  )
}

function meRoutes(app: App, { db, limitsOf }: AuthPorts): void {
  const me = async (request: FastifyRequest): Promise<Me> => {
    const { userId, address, credential, scope } = callerOf(request)
    const [key, limits] = await Promise.all([currentKey(db, userId), limitsOf(request)])
    const api_key = key ?? null
    return { user_id: userId, address, addresses: [address], credential, scope, api_key, limits: [...limits] }
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
    async (request) => ({ limits: [...(await limitsOf(request))] }),
  )
}

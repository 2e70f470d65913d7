/** The caller's own account, its API key and its limits. */
import Type, { type Static } from 'typebox'
import { BUCKETS } from '../http/access.ts'
import { expects, named, namedInput, nullable, nullableObject, Time, words } from '../wire/schema.ts'

const SCOPES = ['trade', 'read'] as const
const MAX_NETWORKS = 32

const action = words(['rotate_api_key'], 'What the signature will authorize.')

export const ChallengeBody = namedInput('ChallengeBody', { action })

export const ChallengeAnswer = named('ChallengeAnswer', {
  challenge_id: Type.String(),
  action,
  message: Type.String({
    description:
      "The exact text that the owner's wallet signs as a personal message (EIP-191), in the form of EIP-4361.",
  }),
  expires_at: Time('Five minutes after the request.'),
})
export type ChallengeAnswer = Static<typeof ChallengeAnswer>

const scope = words(SCOPES, '`read` keys are refused by every endpoint that takes effect.')

export const NETWORK_EXPECTED = 'an IP address, or a network such as 192.0.2.0/24 or 2001:db8::/48'

const networks = {
  type: 'array',
  items: { type: 'string', ...expects(NETWORK_EXPECTED) },
  description: 'IP addresses and networks from which the key is accepted; null: from all.',
}
const Networks = Type.Unsafe<readonly string[] | null>({ ...networks, type: ['array', 'null'] })

export const RotateBody = namedInput('RotateBody', {
  challenge_id: Type.String({
    pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$',
    ...expects('challenge_id of POST /v0/auth/challenge'),
    description: '`challenge_id` of POST /v0/auth/challenge.',
  }),
  signature: Type.String({
    description:
      "The owner's signature of the challenge's `message`: 65 bytes, r, s and v. A contract wallet's may have another length.",
  }),
  scope: Type.Optional(words(SCOPES, 'Default trade.')),
  allowed_addresses: Type.Optional(
    Type.Array(Type.String(), {
      minItems: 1,
      maxItems: MAX_NETWORKS,
      ...expects(`1 to ${MAX_NETWORKS} times ${NETWORK_EXPECTED}`),
      description: `The key is accepted only from these IP addresses and networks. Without it, from all.`,
    }),
  ),
})

const prefix = Type.String({ description: 'First characters of the key, to recognize it.' })

export const RotateAnswer = named('RotateAnswer', {
  api_key: Type.String({ description: 'Shown once. The exchange stores only its hash.' }),
  user_id: Type.Integer(),
  prefix,
  scope,
  allowed_addresses: Networks,
  created_at: Time('Time from which the key is valid, and the previous one is not.'),
})
export type RotateAnswer = Static<typeof RotateAnswer>

const Limit = Type.Object({
  bucket: words(BUCKETS, 'Which requests are counted together.'),
  limit: Type.Integer({ description: 'Requests per window.' }),
  window_seconds: Type.Number(),
  remaining: Type.Integer({ description: 'Requests left in the current window.' }),
  reset_seconds: Type.Integer({ description: 'Seconds until the current window ends.' }),
})

export const LimitsAnswer = named('LimitsAnswer', { limits: Type.Array(Limit) })

export const Me = named('Me', {
  user_id: Type.Integer(),
  address: Type.String({ description: 'Wallet of the account.' }),
  addresses: Type.Array(Type.String(), { description: 'All wallets of the account: one.' }),
  credential: words(['api_key', 'identity_token'], 'The credential of this request.'),
  scope,
  api_key: nullableObject(
    Type.Object({
      prefix,
      scope,
      allowed_addresses: Networks,
      created_at: Time('Time of the creation.'),
      last_used_at: nullable(
        Type.String({ format: 'date-time', description: 'Time of the last use, to about a minute.' }),
      ),
    }),
    'The current API key of the account; null if there is none.',
  ),
  limits: Type.Array(Limit),
})
export type Me = Static<typeof Me>

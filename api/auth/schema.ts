/** The caller's own account, its API key and its limits. */
import Type, { type Static } from 'typebox'
import { BUCKETS } from '../http/buckets.ts'
import { closed, expects, named, namedInput, nullable, nullableObject, Time, words } from '../wire/schema.ts'

const SCOPES = ['trade', 'read'] as const
const MAX_NETWORKS = 32

const action = words(
  ['rotate_api_key', 'create_api_key'],
  'What the signature will authorize: POST /v0/me/api-key/rotate, or POST /v0/me/api-keys.',
)

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

const newKey = {
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
}

export const RotateBody = namedInput('RotateBody', newKey)

export const KEY_NAME_EXPECTED =
  'a lower-case letter or digit, and up to 31 more of them, hyphens or underscores'

const keyName = Type.String({
  pattern: '^[a-z0-9][a-z0-9_-]{0,31}$',
  ...expects(KEY_NAME_EXPECTED),
  description: 'Name of the key within the account. `default` is the key of POST /v0/me/api-key/rotate.',
})

export const ApiKeyBody = namedInput('ApiKeyBody', { name: keyName, ...newKey })

export const ApiKeyParams = closed({ name: keyName })

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

export const CreatedApiKey = named('CreatedApiKey', {
  name: keyName,
  ...RotateAnswer.properties,
  created_at: Time('Time from which the key is valid.'),
})
export type CreatedApiKey = Static<typeof CreatedApiKey>

const keyFacts = {
  prefix,
  scope,
  allowed_addresses: Networks,
  created_at: Time('Time of the creation.'),
  last_used_at: nullable(
    Type.String({ format: 'date-time', description: 'Time of the last use, to about a minute.' }),
  ),
}

export const ApiKey = named('ApiKey', { name: keyName, ...keyFacts })
export type ApiKey = Static<typeof ApiKey>

export const ApiKeys = named('ApiKeys', {
  api_keys: Type.Array(ApiKey, { description: 'By name, ascending.' }),
})

export const Revoked = named('RevokedApiKey', { success: Type.Literal(true) })

const window = {
  window_seconds: Type.Number(),
  reset_seconds: Type.Integer({ description: 'Seconds until the current window ends.' }),
}

const Limit = Type.Object({
  bucket: words(BUCKETS, 'Which requests are counted together.'),
  limit: Type.Integer({ description: 'Requests per window.' }),
  remaining: Type.Integer({ description: 'Requests left in the current window.' }),
  ...window,
})

const Cost = Type.Object(
  {
    limit: Type.Integer({
      description: 'Units per window: a million per second, less those reserved for cancels.',
    }),
    remaining: Type.Integer({ description: 'Units left in the current window.' }),
    ...window,
  },
  {
    description:
      'The budget of all limits together. A request takes the part of a second that its limit implies.',
  },
)

export const LimitsAnswer = named('LimitsAnswer', { limits: Type.Array(Limit), cost: Cost })

export const Me = named('Me', {
  user_id: Type.Integer(),
  address: Type.String({ description: 'Wallet of the account.' }),
  addresses: Type.Array(Type.String(), { description: 'All wallets of the account: one.' }),
  credential: words(['api_key', 'identity_token'], 'The credential of this request.'),
  scope,
  api_key_name: nullable(
    Type.String({ description: 'Name of the API key of this request; null for an identity token.' }),
  ),
  api_key: nullableObject(
    Type.Object(keyFacts),
    'The API key of the account that is named `default`; null if there is none.',
  ),
  limits: Type.Array(Limit),
})
export type Me = Static<typeof Me>

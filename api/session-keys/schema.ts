/** Session keys: preparing, relaying and listing. */
import Type, { type Static } from 'typebox'
import { addressInput, forwardFields, signatureField } from '../relays/forward-body.ts'
import {
  closed,
  maybeWords,
  NextCursor,
  named,
  namedInput,
  nullable,
  pageQuery,
  rangeQuery,
  Time,
  words,
} from '../wire/schema.ts'

const OPERATIONS = ['register', 'revoke'] as const
const Operation = words(OPERATIONS, 'register approves the key, revoke takes its approval back.')

export const PrepareBody = namedInput(
  'PrepareBody',
  {
    session_public_address: addressInput('Address of the locally generated key.'),
    operation: Operation,
  },
  { 'x-hints': { new_session_public_address: 'send session_public_address' } },
)

const OperationId = Type.String({
  description: 'Id of the operation: the EIP-712 digest of the forward request, which its owner signs.',
})
const SessionKeyId = Type.String({ description: 'Id of the key for this account.' })
const Address = (description: string) => Type.String({ description })

export const Prepared = named('Prepared', {
  from: Address('The owner, which signs the request.'),
  to: Address('The account manager.'),
  value: Type.Integer({ description: 'Always 0; part of the typed data.' }),
  gas: Type.Integer(),
  nonce: Type.Integer({ description: "The owner's next nonce at the forwarder." }),
  deadline: Type.Integer({ description: 'Unix seconds.' }),
  data: Type.String(),
  chain_id: Type.Integer(),
  account_manager_address: Address('The registry of session keys.'),
  forwarder_address: Address('Verifying contract of the typed data: name `Forwarder`, version `1`.'),
  operation: Operation,
  session_public_address: Address('The session key.'),
  session_key_id: SessionKeyId,
  operation_id: OperationId,
})

const SERVER_SETS = 'the server sets it; leave it out'

/** Fields of prepare's answer may be sent back unchanged. */
export const RelayBody = namedInput(
  'RelayBody',
  {
    ...forwardFields,
    signature: signatureField,
    session_public_address: addressInput('Address of the session key.'),
    approved: Type.Boolean({ description: 'true registers the key, false revokes it.' }),
    session_key_id: Type.Optional(
      Type.String({ maxLength: 100, description: 'Required to revoke: the id of the key.' }),
    ),
    value: Type.Optional(Type.Integer({ minimum: 0, maximum: 0, description: 'Always 0.' })),
    chain_id: Type.Optional(Type.Integer()),
    account_manager_address: Type.Optional(addressInput('As prepared.')),
    forwarder_address: Type.Optional(addressInput('As prepared.')),
    operation: Type.Optional(Operation),
    operation_id: Type.Optional(Type.String({ maxLength: 100, description: 'As prepared.' })),
  },
  { 'x-hints': { expiration_seconds: SERVER_SETS, permissions: SERVER_SETS } },
)
export type RelayBody = Static<typeof RelayBody>

const STATUSES = ['QUEUED', 'RELAYING', 'CONFIRMED', 'FAILED'] as const
const FAILURES = ['REVERTED', 'SUPERSEDED', 'EXPIRED'] as const

export const OperationView = named('OperationView', {
  operation_id: OperationId,
  operation: Operation,
  session_public_address: Address('The session key.'),
  session_key_id: SessionKeyId,
  status: words(
    STATUSES,
    'QUEUED: accepted. RELAYING: a transaction is signed and being sent. CONFIRMED: executed and recorded from the chain. ' +
      'FAILED: not executed.',
  ),
  failure: maybeWords(
    FAILURES,
    'REVERTED: the call failed. SUPERSEDED: another request with the nonce was executed. EXPIRED: the deadline has passed.',
  ),
  failure_reason: nullable(Type.String()),
  nonce: Type.Integer(),
  deadline: Type.Integer({ description: 'Unix seconds.' }),
  tx_hash: nullable(
    Type.String({
      description: 'Of the transaction that was sent; once confirmed, of the one that executed it.',
    }),
  ),
  created_at: Time('Time of the acceptance.'),
  updated_at: Time('Time of the last change of the status.'),
})

export const OperationParams = closed({
  operation_id: Type.String({
    pattern: '^0x[0-9a-fA-F]{64}$',
    description: '`operation_id` of prepare or relay.',
  }),
})

const KEY_STATUSES = ['ACTIVE', 'EXPIRED', 'REVOKED'] as const

export const SessionKeysQuery = closed({
  status: Type.Optional(
    words(KEY_STATUSES, 'Keys with this status only; without it the list is the history.'),
  ),
  ...rangeQuery('keys registered'),
  ...pageQuery,
})

const SessionKeyView = Type.Object({
  session_key_id: SessionKeyId,
  session_public_address: Address('The session key.'),
  status: words(
    KEY_STATUSES,
    'ACTIVE: approved on the chain and within its lifetime. EXPIRED: 30 days after the first registration; the approval may still ' +
      'exist and can be revoked. REVOKED: the revocation is on the chain.',
  ),
  permissions: Type.Array(words(['orders', 'margin'], 'What the key may sign.')),
  registered_at: Time('Of the first registration, by block time.'),
  expires_at: Time('From then on the key signs nothing.'),
  revoked_at: nullable(Time('Of the revocation, by block time; null: not revoked.')),
  revocation_requested: Type.Boolean({
    description:
      'A revocation was accepted for relaying: no order of the key is accepted any more, whatever its status.',
  }),
  pending_operation_id: nullable(Type.String({ description: 'The open operation of this key.' })),
})

export const SessionKeys = named('SessionKeys', {
  session_keys: Type.Array(SessionKeyView),
  pending_operations: Type.Array(OperationView, {
    description: 'Open operations of the account, also of keys that are not on the chain yet.',
  }),
  next_cursor: NextCursor,
})

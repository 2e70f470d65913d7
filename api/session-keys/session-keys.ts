/** Registrations and revocations of the caller's session keys. */
import type { Tx } from '../../db/client.ts'
import type { RelayOperation } from '../../db/relay-operations.ts'
import { countActiveKeys, loadSigningKey } from '../../db/session-keys.ts'
import { findUsers } from '../../db/users.ts'
import { calldataOf } from '../../domain/relays/forward-request.ts'
import type { RelayEffect } from '../../domain/relays/operation.ts'
import {
  type KeyChange,
  registrationRefusal,
  revocationRefusal,
} from '../../domain/session-keys/session-key.ts'
import type { Address } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError } from '../errors.ts'
import { parseForwardRequest } from '../relays/forward-body.ts'
import type { PreparedRequest, Relays } from '../relays/relays.ts'
import type { RelayBody } from './schema.ts'
import { sessionKeyIdOf } from './view.ts'

export type KeyOperation = 'register' | 'revoke'

export interface SessionKeyPorts {
  readonly relays: Relays
  readonly clock: Clock
  readonly chainId: number
  readonly accountManager: Address
  readonly forwarder: Address
}

export interface SessionKeys {
  prepare(caller: Caller, sessionKey: string, operation: KeyOperation): Promise<PreparedRequest>
  relay(caller: Caller, body: RelayBody): Promise<RelayOperation>
}

const effectOf = (operation: KeyOperation, sessionKey: string): RelayEffect => ({
  kind: operation === 'register' ? 'register_session_key' : 'revoke_session_key',
  sessionKey,
})

export function createSessionKeys({
  relays,
  clock,
  chainId,
  accountManager,
  forwarder,
}: SessionKeyPorts): SessionKeys {
  const checking = (caller: Caller, operation: KeyOperation, sessionKey: string) => {
    const check = operation === 'register' ? checkRegistration : checkRevocation
    return async (tx: Tx, open: readonly RelayOperation[]) => {
      const key = await loadSigningKey(tx, { owner: caller.address, key: sessionKey })
      rejectPending(open, operation, sessionKey)
      await check(tx, { owner: caller.address, sessionKey, key, now: clock.now() }, open)
    }
  }

  return {
    prepare: (caller, address, operation) => {
      const sessionKey = address.toLowerCase()
      const effect = effectOf(operation, sessionKey)
      return relays.prepare(caller, accountManager, effect, checking(caller, operation, sessionKey))
    },

    async relay(caller, body) {
      const operation = body.approved ? 'register' : 'revoke'
      const sessionKey = body.session_public_address.toLowerCase()
      checkEchoes(body, {
        ...{
          chain_id: chainId,
          account_manager_address: accountManager,
          forwarder_address: forwarder,
          operation,
        },
      })
      checkKeyId(body, sessionKeyIdOf(caller.userId, sessionKey))
      const effect = effectOf(operation, sessionKey)
      const expected = { from: caller.address, to: accountManager, data: calldataOf(effect) }
      const request = parseForwardRequest(body, expected)
      return relays.accept(caller, { effect, request, signature: body.signature })
    },
  }
}

type Echoes = Required<
  Pick<RelayBody, 'chain_id' | 'account_manager_address' | 'forwarder_address' | 'operation'>
>

/** Fields of prepare's answer that are sent back must be unchanged: a client with another value would expect another effect. */
function checkEchoes(body: RelayBody, expected: Echoes): void {
  for (const field of Object.keys(expected) as (keyof Echoes)[]) {
    const received = body[field]
    const normal = typeof received === 'string' ? received.toLowerCase() : received
    if (normal !== undefined && normal !== expected[field])
      throw new ApiError('INVALID_FIELD', { field, expected: expected[field], received })
  }
}

function checkKeyId({ approved, session_key_id: received }: RelayBody, expected: string): void {
  if (received === undefined && !approved)
    throw new ApiError('MISSING_FIELD', { field: 'session_key_id', expected: 'the id of the key to revoke' })
  if (received !== undefined && received !== expected)
    throw new ApiError('INVALID_FIELD', { field: 'session_key_id', expected, received })
}

/** One operation per key and effect at a time. A revocation may follow a registration that is still open. */
function rejectPending(open: readonly RelayOperation[], operation: KeyOperation, sessionKey: string): void {
  const { kind } = effectOf(operation, sessionKey)
  const same = open.find((each) => each.session_key === sessionKey && each.kind === kind)
  if (same === undefined) return
  throw new ApiError('SESSION_KEY_PENDING', {
    ...{ field: 'session_public_address', operation_id: same.operation_id, status: same.status },
  })
}

type Check = (tx: Tx, change: KeyChange, open: readonly RelayOperation[]) => Promise<void>

const checkRegistration: Check = async (tx, change, open) => {
  const { owner, sessionKey, now } = change
  const registering = open.filter(({ kind }) => kind === 'register_session_key').length
  const active = registering + (await countActiveKeys(tx, owner, Math.floor(now / 1000)))
  const isAccount = (await findUsers(tx, [sessionKey as Address])).size > 0
  const refusal = registrationRefusal(change, { isAccount, active })
  if (refusal === null) return
  const { code, ...context } = refusal
  throw new ApiError(code, { field: 'session_public_address', received: sessionKey, ...context })
}

const checkRevocation: Check = async (_tx, change, open) => {
  const isRegistering = open.some(
    ({ kind, session_key }) => kind === 'register_session_key' && session_key === change.sessionKey,
  )
  const refusal = isRegistering ? null : revocationRefusal(change)
  if (refusal === null) return
  const { code, ...context } = refusal
  throw new ApiError(code, { field: 'session_public_address', received: change.sessionKey, ...context })
}

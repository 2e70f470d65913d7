/** Converts session keys and their operations to JSON. */
import type { RelayOperation } from '../../db/relay-operations.ts'
import type { ListedKey } from '../../db/session-keys.ts'
import { PERMISSIONS, type Permission, sessionKeyStatus } from '../../domain/session-keys/session-key.ts'
import type { Millis } from '../../domain/units.ts'
import { changeTime, isoTime, maybeTime } from '../wire/amounts.ts'
import { errorName } from '../wire/chain-error.ts'

/** The account and the key: the same key of another account has another id. */
export const sessionKeyIdOf = (userId: number, sessionKey: string): string => `${userId}-${sessionKey}`

export const operationView = (operation: RelayOperation) => ({
  operation_id: operation.operation_id,
  operation: operation.kind === 'revoke_session_key' ? ('revoke' as const) : ('register' as const),
  session_public_address: operation.session_key as string,
  session_key_id: sessionKeyIdOf(operation.user_id, operation.session_key as string),
  status: operation.status,
  failure: operation.failure,
  failure_reason: operation.reason && errorName(operation.reason),
  nonce: operation.nonce,
  deadline: operation.deadline,
  tx_hash: operation.tx_hash,
  created_at: isoTime(operation.created_at),
  updated_at: changeTime(operation),
})

const permissionsOf = (bits: number): Permission[] =>
  (Object.keys(PERMISSIONS) as Permission[]).filter((name) => (bits & PERMISSIONS[name]) !== 0)

export function keyView(
  key: ListedKey,
  userId: number,
  { pending, now }: { readonly pending: readonly RelayOperation[]; readonly now: Millis },
) {
  const own = pending.filter(({ session_key }) => session_key === key.key)
  return {
    session_key_id: sessionKeyIdOf(userId, key.key),
    session_public_address: key.key,
    status: sessionKeyStatus(key, now),
    permissions: permissionsOf(key.permissions),
    registered_at: isoTime(key.registered_at * 1000),
    expires_at: isoTime(key.expires_at * 1000),
    revoked_at: maybeTime(key.revoked_at && key.revoked_at * 1000),
    revocation_requested: key.is_revoking,
    pending_operation_id: own.at(-1)?.operation_id ?? null,
  }
}

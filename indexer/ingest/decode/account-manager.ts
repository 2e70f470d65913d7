/** Events of AccountManager: session keys that are registered and revoked. */

import type { IgnoredEvent, SessionKeyUpdated } from '../../../domain/chain/facts.ts'
import type { AccountManagerInterface } from '../../../typechain-types/AccountManager.ts'
import { AccountManager__factory } from '../../../typechain-types/factories/AccountManager__factory.ts'
import { addressOf, decodeEvent, type EventTable, type LogData } from './event-table.ts'

const ACCOUNT_MANAGER = AccountManager__factory.createInterface()

const EVENTS: EventTable<AccountManagerInterface, SessionKeyUpdated, null> = {
  SessionKeyRegistered: ({ owner, key, permissions, registeredAt, expiresAt }) => ({
    kind: 'session_key_updated',
    owner: addressOf(owner),
    key: addressOf(key),
    change: {
      permissions: Number(permissions),
      registered_at: Number(registeredAt),
      expires_at: Number(expiresAt),
    },
  }),
  SessionKeyRevoked: ({ owner, key, revokedAt }) => ({
    kind: 'session_key_updated',
    owner: addressOf(owner),
    key: addressOf(key),
    change: { revoked_at: Number(revokedAt) },
  }),
}

export const decodeAccountManagerLog = (log: LogData): SessionKeyUpdated | IgnoredEvent =>
  decodeEvent(ACCOUNT_MANAGER, EVENTS, log, null)

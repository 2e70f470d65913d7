/** Session keys: status, permissions, and the registrations and revocations that the exchange relays. */
import type { SessionKeyState } from '../journal/accounts-row.ts'
import { aliveUntil, isExpired } from '../orders/order.ts'
import type { Millis, Seconds } from '../units.ts'

export type SessionKeyStatus = 'ACTIVE' | 'EXPIRED' | 'REVOKED'

/**
 * ACTIVE: approved on chain, within 30 days of first registration. EXPIRED: after 30 days; the approval may still
 * exist. REVOKED: revoked on chain, also if expired.
 */
export function sessionKeyStatus(
  { revoked_at, expires_at }: Pick<SessionKeyState, 'revoked_at' | 'expires_at'>,
  now: Millis,
): SessionKeyStatus {
  if (revoked_at !== null) return 'REVOKED'
  return now >= expires_at * 1000 ? 'EXPIRED' : 'ACTIVE'
}

/**
 * True from one second before the key's expiry: orders end in whole seconds, and the key signs only for
 * `asOf` below its expiry.
 */
const hasEnded = (expiresAt: number, now: Millis): boolean =>
  isExpired(aliveUntil(0 as Seconds, expiresAt as Seconds), now)

/** Bits of `permissions`. */
export const PERMISSIONS = { orders: 1, margin: 2 } as const
export type Permission = keyof typeof PERMISSIONS

/** A stored key, and whether its newest accepted revocation is still missing on chain. */
export interface SigningKey extends Omit<SessionKeyState, 'registered_at'> {
  readonly is_revoking: boolean
}

export type SignerRefusal =
  | { readonly code: 'SESSION_KEY_REVOKED'; readonly revoked_at: number }
  | { readonly code: 'SESSION_KEY_REVOKING' }
  | { readonly code: 'SESSION_KEY_EXPIRED'; readonly expired_at: number }
  | { readonly code: 'SESSION_KEY_NOT_PERMITTED' }

/**
 * Reason why the key may not sign; null if it may.
 * A requested revocation counts at once, and stays in force if its relay fails, because its owner no longer trusts the key.
 */
export function signerRefusal(key: SigningKey, permission: Permission, now: Millis): SignerRefusal | null {
  const { revoked_at, expires_at, permissions, is_revoking } = key
  if (revoked_at !== null) return { code: 'SESSION_KEY_REVOKED', revoked_at }
  if (is_revoking) return { code: 'SESSION_KEY_REVOKING' }
  if (hasEnded(expires_at, now)) return { code: 'SESSION_KEY_EXPIRED', expired_at: expires_at }
  return (permissions & PERMISSIONS[permission]) === 0 ? { code: 'SESSION_KEY_NOT_PERMITTED' } : null
}

/** Maximum active keys plus open registrations of one account. */
export const MOST_ACTIVE_KEYS = 20
/** Maximum open operations of one account; the exchange pays a transaction for each. */
export const MOST_OPEN_RELAYS = 8

export interface KeyChange {
  readonly owner: string
  readonly sessionKey: string
  /** Stored key; null if no event of the chain has named it. */
  readonly key: SigningKey | null
  readonly now: Millis
}

const ZERO = `0x${'0'.repeat(40)}`

export type RegistrationRefusal =
  | { readonly code: 'SESSION_KEY_IS_ACCOUNT' }
  | { readonly code: 'SESSION_KEY_ZERO' }
  | {
      readonly code: 'SESSION_KEY_REGISTERED'
      readonly status: 'ACTIVE' | 'EXPIRED' | 'REVOKED' | 'REVOKING'
    }
  | { readonly code: 'SESSION_KEY_LIMIT'; readonly most: number }

/**
 * Whether a registration may be relayed.
 * A key is registered once: the contract refuses an expired key forever, and a revoked key may be compromised.
 */
export function registrationRefusal(
  { owner, sessionKey, key, now }: KeyChange,
  others: { readonly isAccount: boolean; readonly active: number },
): RegistrationRefusal | null {
  if (sessionKey === ZERO) return { code: 'SESSION_KEY_ZERO' }
  if (sessionKey === owner || others.isAccount) return { code: 'SESSION_KEY_IS_ACCOUNT' }
  if (key !== null) {
    const status = sessionKeyStatus(key, now)
    return {
      code: 'SESSION_KEY_REGISTERED',
      status: status === 'ACTIVE' && key.is_revoking ? 'REVOKING' : status,
    }
  }
  return others.active >= MOST_ACTIVE_KEYS ? { code: 'SESSION_KEY_LIMIT', most: MOST_ACTIVE_KEYS } : null
}

export type RevocationRefusal =
  | { readonly code: 'SESSION_KEY_NOT_FOUND' }
  | { readonly code: 'SESSION_KEY_REVOKED'; readonly revoked_at: number }

/** Whether a revocation may be relayed: the key belongs to the account and is approved, even if expired. */
export function revocationRefusal({ key }: KeyChange): RevocationRefusal | null {
  if (key === null) return { code: 'SESSION_KEY_NOT_FOUND' }
  const { revoked_at } = key
  return revoked_at === null ? null : { code: 'SESSION_KEY_REVOKED', revoked_at }
}

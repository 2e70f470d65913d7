/** Session keys: their status, what they may sign, and which registrations and revocations the exchange relays. */
import type { SessionKeyState } from '../journal/accounts-row.ts'
import { aliveUntil, isExpired } from '../orders/order.ts'
import type { Millis, Seconds } from '../units.ts'

export type SessionKeyStatus = 'ACTIVE' | 'EXPIRED' | 'REVOKED'

/**
 * ACTIVE: approved on the chain and within its lifetime of 30 days from its first registration. EXPIRED: the lifetime is over; the approval
 * may still exist and can be revoked. REVOKED: the revocation is on the chain, also of an expired key.
 */
export function sessionKeyStatus(
  { revoked_at, expires_at }: Pick<SessionKeyState, 'revoked_at' | 'expires_at'>,
  now: Millis,
): SessionKeyStatus {
  if (revoked_at !== null) return 'REVOKED'
  return now >= expires_at * 1000 ? 'EXPIRED' : 'ACTIVE'
}

/** A second before the key's expiry: orders end in whole seconds, and the key signs for an `asOf` below its expiry. */
const hasEnded = (expiresAt: number, now: Millis): boolean =>
  isExpired(aliveUntil(0 as Seconds, expiresAt as Seconds), now)

/** Bits of `permissions`. */
export const PERMISSIONS = { orders: 1, margin: 2 } as const
export type Permission = keyof typeof PERMISSIONS

/** A key as stored, and whether the newest revocation of it that was accepted is not on the chain. */
export interface SigningKey extends Omit<SessionKeyState, 'registered_at'> {
  readonly is_revoking: boolean
}

export type SignerRefusal =
  | { readonly code: 'SESSION_KEY_REVOKED'; readonly revoked_at: number }
  | { readonly code: 'SESSION_KEY_REVOKING' }
  | { readonly code: 'SESSION_KEY_EXPIRED'; readonly expired_at: number }
  | { readonly code: 'SESSION_KEY_NOT_PERMITTED' }

/**
 * Why the key may not sign; null if it may. A requested revocation counts at once and stays in force if its relay fails: its owner does
 * not trust the key any more.
 */
export function signerRefusal(key: SigningKey, permission: Permission, now: Millis): SignerRefusal | null {
  const { revoked_at, expires_at, permissions, is_revoking } = key
  if (revoked_at !== null) return { code: 'SESSION_KEY_REVOKED', revoked_at }
  if (is_revoking) return { code: 'SESSION_KEY_REVOKING' }
  if (hasEnded(expires_at, now)) return { code: 'SESSION_KEY_EXPIRED', expired_at: expires_at }
  return (permissions & PERMISSIONS[permission]) === 0 ? { code: 'SESSION_KEY_NOT_PERMITTED' } : null
}

/** Active keys and open registrations of one account. */
export const MOST_ACTIVE_KEYS = 20
/** Open operations of one account: each is a transaction that the exchange pays. */
export const MOST_OPEN_RELAYS = 8

export interface KeyChange {
  readonly owner: string
  readonly sessionKey: string
  /** As stored; null if the chain has never named the key. */
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
 * Whether a registration may be relayed. A key is registered once: the contract refuses an expired key for ever, and a revoked one may be
 * in wrong hands.
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

/** Whether a revocation may be relayed: of an own key that is approved, also of an expired one. */
export function revocationRefusal({ key }: KeyChange): RevocationRefusal | null {
  if (key === null) return { code: 'SESSION_KEY_NOT_FOUND' }
  const { revoked_at } = key
  return revoked_at === null ? null : { code: 'SESSION_KEY_REVOKED', revoked_at }
}

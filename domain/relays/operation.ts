/** An owner's forward request on its way to the chain: kinds, states, and the chain events that end it. */
export type RelayKind = 'register_session_key' | 'revoke_session_key' | 'invalidate_margin_nonces'

/**
 * QUEUED: no transaction signed. RELAYING: a stored transaction is sent until its nonce is used. CONFIRMED: executed,
 * and the state matches the request. FAILED: see `RelayFailure`.
 */
export type RelayStatus = 'QUEUED' | 'RELAYING' | 'CONFIRMED' | 'FAILED'

/**
 * REVERTED: the transaction reverted and changed nothing.
 * SUPERSEDED: another request with the same nonce was executed. EXPIRED: the deadline has passed.
 */
export type RelayFailure = 'REVERTED' | 'SUPERSEDED' | 'EXPIRED'

export const isOpenRelay = (status: RelayStatus): boolean => status === 'QUEUED' || status === 'RELAYING'

/** Effect of the request on the chain. */
export type RelayEffect =
  | { readonly kind: 'register_session_key' | 'revoke_session_key'; readonly sessionKey: string }
  | { readonly kind: 'invalidate_margin_nonces'; readonly marketId: number; readonly minimum: bigint }

/** All permissions: orders, and margin and leverage changes. */
export const ALL_PERMISSIONS = 3

/** State of the chain after the request's nonce was executed. */
export interface ObservedEffect {
  /** The state of the request's session key; null if it was never registered. */
  readonly key: { readonly permissions: number; readonly revoked_at: number | null } | null
  /** The account's lowest valid margin nonce in the request's market. */
  readonly floor: bigint
}

/**
 * Whether the chain's state matches the request.
 * The used nonce alone is no proof: another request may have used it. A matching state fulfils the request in either case.
 */
export function isFulfilled(effect: RelayEffect, { key, floor }: ObservedEffect): boolean {
  switch (effect.kind) {
    case 'register_session_key':
      return key !== null && key.revoked_at === null && key.permissions === ALL_PERMISSIONS
    case 'revoke_session_key':
      return key !== null && key.revoked_at !== null
    case 'invalidate_margin_nonces':
      return floor >= effect.minimum
  }
}

/**
 * Lowest nonce that is neither executed on chain nor used by an open operation. Nonces of one signer execute
 * in order.
 */
export function nextForwardNonce(executed: number, open: readonly number[]): number {
  const taken = new Set(open)
  let nonce = executed
  while (taken.has(nonce)) nonce++
  return nonce
}

/**
 * Accepts signed forward requests for relaying:
 * session-key registrations, session-key revocations, and higher minimums of margin nonces.
 */
import type { RelayChanged } from '../../../journal/accounts-row.ts'
import type { ForwardRequest } from '../../../relays/forward-request.ts'
import {
  nextForwardNonce,
  type RelayEffect,
  type RelayKind,
  type RelayStatus,
} from '../../../relays/operation.ts'
import {
  type KeyChange,
  MOST_OPEN_RELAYS,
  type RegistrationRefusal,
  type RevocationRefusal,
  registrationRefusal,
  revocationRefusal,
  type SigningKey,
} from '../../../session-keys/session-key.ts'
import type { Address, Millis, UserId } from '../../../units.ts'
import type { Decider } from '../../decide.ts'
import { ACCOUNTS, type Draft } from '../../draft.ts'
import type { ExchangeState } from '../../state.ts'
import { keyOfSessionKey, type RelayRow } from '../../tables/chain.ts'
import { nonceFloor } from '../chain/read.ts'

export interface AcceptRelayCommand {
  readonly kind: 'accept_relay'
  readonly userId: UserId
  /** Digest of the request, which identifies the operation. */
  readonly operationId: string
  /** Effect of the request's data. The api has checked data, bounds and signature. */
  readonly effect: RelayEffect
  readonly request: ForwardRequest
  readonly signature: string
  /**
   * Whether a worker of the lane is alive. Without a worker only revocations are accepted, because they count at once.
   */
  readonly hasLane: boolean
}

export type RelayRefusal =
  | { readonly code: 'MAKER_MISMATCH'; readonly received: Address; readonly expected: Address | null }
  | { readonly code: 'RELAY_UNAVAILABLE' }
  | {
      readonly code: 'FORWARD_NONCE_USED' | 'FORWARD_NONCE_GAP'
      readonly expected: number
      readonly received: number
    }
  | {
      readonly code: 'FORWARD_NONCE_TAKEN'
      readonly expected: number
      readonly received: number
      readonly operationId: string
    }
  | { readonly code: 'RELAY_LIMIT'; readonly most: number }
  | { readonly code: 'SESSION_KEY_PENDING'; readonly operationId: string; readonly status: RelayStatus }
  | (RegistrationRefusal & { readonly received: string })
  | (RevocationRefusal & { readonly received: string })
  | { readonly code: 'MARGIN_NONCE_NOT_RAISED'; readonly minimum: bigint; readonly received: bigint }

export type RelayAnswer =
  /** `isNew`: false for an operation accepted earlier, regardless of its state. */
  | {
      readonly kind: 'accepted'
      readonly operationId: string
      readonly status: RelayStatus
      readonly isNew: boolean
    }
  | { readonly kind: 'refused'; readonly refusal: RelayRefusal }

export const decideAcceptRelay: Decider<AcceptRelayCommand, RelayAnswer> = (draft, { now }, command) => {
  const { state } = draft
  const { operationId } = command
  const known = state.relays.get(operationId)
  if (known !== undefined) return { kind: 'accepted', operationId, status: known.status, isNew: false }
  const refusal = refusalOf(state, command, now)
  if (refusal !== null) return { kind: 'refused', refusal }
  accept(draft, command, now)
  return { kind: 'accepted', operationId, status: 'QUEUED', isNew: true }
}

/** First rule that the request breaks; null if there is none. */
function refusalOf(state: ExchangeState, command: AcceptRelayCommand, now: Millis): RelayRefusal | null {
  const { userId, effect, request, hasLane } = command
  const owner = state.users.get(userId)?.address ?? null
  if (owner !== request.from) return { code: 'MAKER_MISMATCH', received: request.from, expected: owner }
  if (effect.kind !== 'revoke_session_key' && !hasLane) return { code: 'RELAY_UNAVAILABLE' }
  const open = state.relayIndex.open(owner)
  const executed = state.forwarderNonces.get(owner)?.next_nonce ?? 0
  return nonceRefusal(request.nonce, executed, open) ?? effectRefusal(state, { owner, effect, open, now })
}

/** Nonces execute without gaps, so only the lowest free nonce can be accepted. */
function nonceRefusal(received: number, executed: number, open: readonly RelayRow[]): RelayRefusal | null {
  const expected = nextForwardNonce(
    executed,
    open.map(({ nonce }) => nonce),
  )
  if (received < executed) return { code: 'FORWARD_NONCE_USED', expected, received }
  const taken = open.find(({ nonce }) => nonce === received)
  if (taken !== undefined)
    return { code: 'FORWARD_NONCE_TAKEN', expected, received, operationId: taken.operation_id }
  if (received !== expected) return { code: 'FORWARD_NONCE_GAP', expected, received }
  return open.length >= MOST_OPEN_RELAYS ? { code: 'RELAY_LIMIT', most: MOST_OPEN_RELAYS } : null
}

interface EffectScope {
  readonly owner: Address
  readonly effect: RelayEffect
  readonly open: readonly RelayRow[]
  readonly now: Millis
}

function effectRefusal(state: ExchangeState, { owner, effect, open, now }: EffectScope): RelayRefusal | null {
  if (effect.kind === 'invalidate_margin_nonces') {
    const { marketId, minimum: received } = effect
    const minimum = nonceFloor(state, marketId, owner)
    return received > minimum ? null : { code: 'MARGIN_NONCE_NOT_RAISED', minimum, received }
  }
  const { sessionKey, kind } = effect
  const same = open.find((one) => one.session_key === sessionKey && one.kind === kind)
  if (same !== undefined)
    return { code: 'SESSION_KEY_PENDING', operationId: same.operation_id, status: same.status }
  const change = { owner, sessionKey, key: signingKey(state, owner, sessionKey), now }
  const refusal = kind === 'register_session_key' ? registering(state, change, open) : revoking(change, open)
  return refusal && { ...refusal, received: sessionKey }
}

function registering(
  state: ExchangeState,
  change: KeyChange,
  open: readonly RelayRow[],
): RegistrationRefusal | null {
  const seconds = Math.floor(change.now / 1_000)
  const active = state.relayIndex
    .keysOf(change.owner)
    .filter(({ revoked_at, expires_at }) => revoked_at === null && expires_at > seconds).length
  const registrations = open.filter(({ kind }) => kind === 'register_session_key').length
  const isAccount = state.userIds.get(change.sessionKey as Address) !== undefined
  return registrationRefusal(change, { isAccount, active: active + registrations })
}

/** A revocation may follow a registration that is still open. */
function revoking(change: KeyChange, open: readonly RelayRow[]): RevocationRefusal | null {
  const isRegistering = open.some(
    ({ kind, session_key }) => kind === 'register_session_key' && session_key === change.sessionKey,
  )
  return isRegistering ? null : revocationRefusal(change)
}

/** The key in the form that permission checks read; null if no event of the chain has named it. */
export function signingKey(
  { sessionKeys, relayIndex }: ExchangeState,
  owner: string,
  key: string,
): SigningKey | null {
  const row = sessionKeys.get(keyOfSessionKey({ owner, key }))
  return row === undefined ? null : { ...row, is_revoking: relayIndex.isRevoking(owner, key) }
}

function accept(draft: Draft, command: AcceptRelayCommand, now: Millis): void {
  const { effect, operationId, request, signature, userId } = command
  const { from, to, gas, nonce, deadline, data } = request
  const isMinimum = effect.kind === 'invalidate_margin_nonces'
  const kind: RelayKind = effect.kind
  const row: RelayChanged = {
    kind: 'relay_changed',
    operation_id: operationId,
    user_id: userId,
    operation: kind,
    session_key: isMinimum ? null : effect.sessionKey,
    market_id: isMinimum ? effect.marketId : null,
    status: 'QUEUED',
    failure: null,
    tx_hash: null,
    at: now,
    request: {
      owner: from,
      target: to,
      gas,
      nonce,
      deadline,
      data,
      signature: signature.toLowerCase(),
      minimum: isMinimum ? effect.minimum.toString() : null,
    },
  }
  draft.write(ACCOUNTS, row)
}

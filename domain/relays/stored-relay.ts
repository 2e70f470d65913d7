/** A stored relay operation, its changes, and the journal rows that state them. */
import type { RelayChanged, RelayRequest } from '../journal/accounts-row.ts'
import {
  isFulfilled,
  type ObservedEffect,
  type RelayEffect,
  type RelayFailure,
  type RelayKind,
  type RelayStatus,
} from './operation.ts'

export interface StoredRelay {
  readonly operation_id: string
  readonly user_id: number
  readonly kind: RelayKind
  readonly session_key: string | null
  readonly market_id: number | null
  readonly minimum: bigint | null
  readonly owner: string
  readonly target: string
  readonly gas: number
  readonly nonce: number
  readonly deadline: number
  readonly data: string
  readonly signature: string
  readonly status: RelayStatus
  readonly failure: RelayFailure | null
  readonly reason: string | null
  readonly relayer: string | null
  readonly relayer_nonce: number | null
  readonly tx_hash: string | null
  readonly block: number | null
  readonly updated_at: number
}

export const relayEffectOf = ({
  kind,
  session_key,
  market_id,
  minimum,
}: Pick<StoredRelay, 'kind' | 'session_key' | 'market_id' | 'minimum'>): RelayEffect =>
  kind === 'invalidate_margin_nonces'
    ? { kind, marketId: market_id as number, minimum: minimum as bigint }
    : { kind, sessionKey: session_key as string }

export const relayRow = (operation: Omit<StoredRelay, 'minimum'>): RelayChanged => ({
  kind: 'relay_changed',
  operation_id: operation.operation_id,
  user_id: operation.user_id,
  operation: operation.kind,
  session_key: operation.session_key,
  market_id: operation.market_id,
  status: operation.status,
  failure: operation.failure,
  tx_hash: operation.tx_hash,
  at: operation.updated_at,
  ...(operation.reason !== null && { reason: operation.reason }),
  ...(operation.relayer !== null && { relayer: operation.relayer }),
  ...(operation.relayer_nonce !== null && { relayer_nonce: operation.relayer_nonce }),
  ...(operation.block !== null && { block: operation.block }),
})

/** Fields in the operation's first row besides its status. */
export const relayRequest = (operation: StoredRelay): RelayRequest => ({
  owner: operation.owner,
  target: operation.target,
  gas: operation.gas,
  nonce: operation.nonce,
  deadline: operation.deadline,
  data: operation.data,
  signature: operation.signature,
  minimum: operation.minimum === null ? null : operation.minimum.toString(),
})

// ---------------------------------------------------------------------- changes

/** Fields that change with a status. */
export type RelayChange = Partial<StoredRelay> & Pick<StoredRelay, 'status' | 'updated_at'>

export interface SignedFor {
  readonly relayer: string
  readonly nonce: number
  readonly hash: string
}

/** A transaction for the operation is stored. */
export const relaying = ({ relayer, nonce, hash }: SignedFor, at: number): RelayChange => ({
  status: 'RELAYING',
  relayer,
  relayer_nonce: nonce,
  tx_hash: hash,
  updated_at: at,
})

/** No request was executed with the relayer nonce of the operation; it is signed again. */
export const requeuedRelay = (at: number): RelayChange => ({
  status: 'QUEUED',
  relayer: null,
  relayer_nonce: null,
  tx_hash: null,
  updated_at: at,
})

export interface RelayEnd {
  readonly failure: RelayFailure
  readonly reason: string
}

/** The request was not executed, and the exchange will never execute it. */
export const failedRelay = ({ failure, reason }: RelayEnd, at: number): RelayChange => ({
  status: 'FAILED',
  failure,
  reason,
  updated_at: at,
})

export interface ExecutedIn {
  readonly block: number
  readonly tx_hash: string
  readonly at: number
}

/**
 * The chain executed the operation's nonce in this block.
 * `end`: failure, if the chain's state does not match the request; null: success.
 */
export const endedRelay = ({ block, tx_hash, at }: ExecutedIn, end: RelayEnd | null): RelayChange =>
  end === null
    ? { status: 'CONFIRMED', failure: null, reason: null, tx_hash, block, updated_at: at }
    : { status: 'FAILED', failure: end.failure, reason: end.reason, block, updated_at: at }

/**
 * The block that ended the operation left the chain. The operation waits again, for its own transaction if one was signed.
 */
export const reopenedRelay = (
  { relayer_nonce }: Pick<StoredRelay, 'relayer_nonce'>,
  at: number,
): RelayChange => ({
  status: relayer_nonce === null ? 'QUEUED' : 'RELAYING',
  failure: null,
  reason: null,
  block: null,
  updated_at: at,
})

/** Failure of an operation with an executed nonce; null if the chain's state matches the request. */
export function relayEndOf(effect: RelayEffect, success: boolean, observed: ObservedEffect): RelayEnd | null {
  if (!success) return { failure: 'REVERTED', reason: 'the forwarded call failed' }
  if (isFulfilled(effect, observed)) return null
  return { failure: 'SUPERSEDED', reason: 'another request with the same nonce was executed' }
}

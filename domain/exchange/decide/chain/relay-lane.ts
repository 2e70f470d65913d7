/**
 * Relay operations on their way to the chain: signed, ended without execution, or queued again.
 * Blocks end executed operations.
 */
import { isOpenRelay, type RelayStatus } from '../../../relays/operation.ts'
import { failedRelay, type RelayEnd, relaying, requeuedRelay } from '../../../relays/stored-relay.ts'
import type { Draft } from '../../draft.ts'
import type { Inputs } from '../../inputs.ts'
import type { ExchangeState } from '../../state.ts'
import type { RelayRow } from '../../tables/chain.ts'
import { changeRelay } from './accounts.ts'
import { signFirst } from './signatures.ts'

/** An operation in the state on which a worker decided. */
export interface SeenRelay {
  readonly operationId: string
  readonly status: RelayStatus
  /** Relayer key of `relayerNonce`. */
  readonly relayer: string | null
  readonly relayerNonce: number | null
}

/** A worker has stored the bytes of a transaction that executes the operation. */
export interface RelaySigned {
  readonly kind: 'relay_signed'
  readonly operationId: string
  readonly relayer: string
  readonly nonce: number
  readonly hash: string
}

/** The request was not executed, and the exchange will never execute it. */
export interface FailRelay extends RelayEnd {
  readonly kind: 'fail_relay'
  readonly seen: SeenRelay
}

/** No request was executed with the relayer nonce that the operation was signed with. */
export interface RequeueRelay {
  readonly kind: 'requeue_relay'
  readonly seen: SeenRelay
}

export type RelayLaneCommand = RelaySigned | FailRelay | RequeueRelay

export type RelayLaneAnswer =
  | { readonly kind: 'done' }
  /** The operation has changed since the worker read it. */
  | { readonly kind: 'changed' }

export function decideRelayLane(draft: Draft, inputs: Inputs, command: RelayLaneCommand): RelayLaneAnswer {
  if (command.kind === 'relay_signed') return noteSigned(draft, inputs, command)
  const operation = openAsSeen(draft.state, command.seen)
  if (operation === undefined) return { kind: 'changed' }
  const { now } = inputs
  const { kind } = command
  changeRelay(draft, operation, kind === 'fail_relay' ? failedRelay(command, now) : requeuedRelay(now))
  return { kind: 'done' }
}

/** Repeating an accepted signature writes no row. */
function noteSigned(draft: Draft, inputs: Inputs, command: RelaySigned): RelayLaneAnswer {
  const { operationId, relayer, nonce, hash } = command
  const operation = draft.state.relays.get(operationId)
  const isAccepted = operation?.status === 'RELAYING' && operation.tx_hash === hash
  if (isAccepted) return { kind: 'done' }
  if (operation?.status !== 'QUEUED') return { kind: 'changed' }
  if (!signFirst(draft, inputs, { relayer, nonce, hash, purpose: 'relay' })) return { kind: 'changed' }
  changeRelay(draft, operation, relaying({ relayer, nonce, hash }, inputs.now))
  return { kind: 'done' }
}

function openAsSeen(
  state: ExchangeState,
  { operationId, status, relayer, relayerNonce }: SeenRelay,
): RelayRow | undefined {
  const operation = state.relays.get(operationId)
  if (operation === undefined || !isOpenRelay(operation.status)) return undefined
  const isSame =
    operation.status === status && operation.relayer === relayer && operation.relayer_nonce === relayerNonce
  return isSame ? operation : undefined
}

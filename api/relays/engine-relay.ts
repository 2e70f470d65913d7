/** Accepts operations by the engine, whose state has every operation, key and nonce: it checks the effect, too. */
import type { Db } from '../../db/client.ts'
import { hasLiveLease } from '../../db/leases.ts'
import { findRelayOperation, type RelayOperation } from '../../db/relay-operations.ts'
import { RELAY_LANE } from '../../db/relayers.ts'
import type { RelayRefusal } from '../../domain/exchange/decide/orders/relays.ts'
import type { ForwardRequest } from '../../domain/relays/forward-request.ts'
import type { RelayEffect } from '../../domain/relays/operation.ts'
import { MOST_OPEN_RELAYS } from '../../domain/session-keys/session-key.ts'
import type { UserId } from '../../domain/units.ts'
import type { Caller } from '../auth/caller.ts'
import type { EngineCalls } from '../engine-reply.ts'
import { ApiError } from '../errors.ts'

export interface SignedForward {
  readonly effect: RelayEffect
  readonly request: ForwardRequest
  readonly signature: string
}

export interface NewOperation extends SignedForward {
  /** Digest of the request. */
  readonly operationId: string
}

/** The request's operation: new, or created earlier by the same request. Throws an ApiError if it is refused. */
export type AcceptRelay = (caller: Caller, operation: NewOperation) => Promise<RelayOperation>

export const createEngineRelays =
  (db: Db, engine: EngineCalls): AcceptRelay =>
  async ({ userId }, { effect, request, signature, operationId }) => {
    const answer = await engine.ask({
      kind: 'accept_relay',
      userId: userId as UserId,
      operationId,
      effect,
      request,
      signature,
      hasLane: await hasLiveLease(db, RELAY_LANE),
    })
    if (answer.kind === 'refused') throw relayError(answer.refusal)
    return (await findRelayOperation(db, operationId)) as RelayOperation
  }

const nonceFacts = ({ expected, received }: { readonly expected: number; readonly received: number }) => ({
  field: 'nonce',
  expected,
  received,
})

export function relayError(refusal: RelayRefusal): ApiError {
  switch (refusal.code) {
    case 'MAKER_MISMATCH':
      throw new Error(`the api sent a request of ${refusal.received} for the account ${refusal.expected}`)
    case 'RELAY_UNAVAILABLE':
      return new ApiError('RELAY_UNAVAILABLE', {}, '5')
    case 'FORWARD_NONCE_USED':
    case 'FORWARD_NONCE_GAP':
      return new ApiError(refusal.code, nonceFacts(refusal))
    case 'FORWARD_NONCE_TAKEN':
      return new ApiError(refusal.code, { ...nonceFacts(refusal), operation_id: refusal.operationId })
    case 'RELAY_LIMIT':
      return new ApiError('RELAY_LIMIT', { expected: `at most ${MOST_OPEN_RELAYS} open operations` }, '5')
    case 'SESSION_KEY_PENDING': {
      const { operationId: operation_id, status } = refusal
      return new ApiError('SESSION_KEY_PENDING', { field: 'session_public_address', operation_id, status })
    }
    case 'MARGIN_NONCE_NOT_RAISED':
      return new ApiError('MARGIN_NONCE_NOT_RAISED', {
        field: 'new_minimum',
        expected: `more than ${refusal.minimum}`,
        received: refusal.received.toString(),
      })
    default: {
      const { code, ...context } = refusal
      return new ApiError(code, { field: 'session_public_address', ...context })
    }
  }
}

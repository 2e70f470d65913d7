/** Raises the lowest valid nonce of the caller's adjustments in a market, by a relayed request that the caller has signed. */
import type { Db } from '../../db/client.ts'
import { loadMarginNonceFloor } from '../../db/margin-nonce-floors.ts'
import { findRelayOperation, RELAY_CHANNEL, type RelayOperation } from '../../db/relay-operations.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { calldataOf } from '../../domain/relays/forward-request.ts'
import { isOpenRelay } from '../../domain/relays/operation.ts'
import type { Address } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError } from '../errors.ts'
import { parseForwardRequest } from '../relays/forward-body.ts'
import type { Relays } from '../relays/relays.ts'
import type { StoredOutcomes } from '../stored-outcome.ts'
import { errorName } from '../wire/chain-error.ts'
import { MAX_INTEGER } from '../wire/schema.ts'
import type { InvalidateBody } from './schema.ts'

export interface MarginNoncePorts {
  readonly db: Db
  readonly relays: Relays
  readonly clock: Clock
  readonly outcomes: StoredOutcomes
  /** Bound of the wait for the outcome. */
  readonly waitMs: number
}

/** Result of `invalidate` once the chain has executed the request. */
export interface RaisedMinimum {
  readonly minimum: bigint
  readonly txHash: string
}

export interface MarginNonces {
  invalidate(caller: Caller, spec: MarketSpec, body: InvalidateBody): Promise<RaisedMinimum>
  minimum(spec: MarketSpec, address: Address): Promise<bigint>
  nextForwardNonce(address: Address): Promise<number>
}

export function createMarginNonces({ db, relays, clock, outcomes, waitMs }: MarginNoncePorts): MarginNonces {
  const outcomeOf = outcomes.of(RELAY_CHANNEL)
  const ended = async (operationId: string): Promise<RelayOperation | null> => {
    const operation = (await findRelayOperation(db, operationId)) as RelayOperation
    return isOpenRelay(operation.status) ? null : operation
  }
  const minimum: MarginNonces['minimum'] = ({ marketId }, account) =>
    loadMarginNonceFloor(db, { marketId, account })

  return {
    minimum,
    nextForwardNonce: relays.nextNonce,
    async invalidate(caller, spec, body) {
      const wanted = minimumOf(body)
      const effect = { kind: 'invalidate_margin_nonces', marketId: spec.marketId, minimum: wanted } as const
      const expected = { from: caller.address, to: spec.trader, data: calldataOf(effect) }
      const request = parseForwardRequest(body, expected)
      const signed = { effect, request, signature: body.signature }
      const { operation_id } = await relays.accept(caller, signed)
      const operation = await outcomeOf(operation_id, clock.now() + waitMs, () => ended(operation_id))
      if (operation === null) throw new ApiError('RELAY_PENDING', { operation_id }, '2')
      const { status, failure, reason, tx_hash } = operation
      if (status === 'FAILED')
        throw new ApiError('RELAY_FAILED', { operation_id, failure, reason: reason && errorName(reason) })
      return { minimum: await minimum(spec, caller.address), txHash: tx_hash as string }
    },
  }
}

function minimumOf({ new_minimum: received }: InvalidateBody): bigint {
  const minimum = BigInt(received)
  if (minimum >= 1n && minimum <= BigInt(MAX_INTEGER)) return minimum
  throw new ApiError('INVALID_FIELD', { field: 'new_minimum', expected: `1 to ${MAX_INTEGER}`, received })
}

/**
 * Stores an operation in tables, under the locks of the `accounts` shard and of the account: an order that is accepted later sees a requested
 * revocation.
 */
import { lockAccounts } from '../../db/accounts.ts'
import type { Db, Tx } from '../../db/client.ts'
import { loadForwarderNonce } from '../../db/forwarder-nonces.ts'
import { appendRows, lockShard } from '../../db/journal.ts'
import { hasLiveLease } from '../../db/leases.ts'
import {
  findRelayOperation,
  insertRelayOperation,
  type NewRelayOperation,
  openRelays,
  type RelayOperation,
} from '../../db/relay-operations.ts'
import { RELAY_LANE } from '../../db/relayers.ts'
import { ACCOUNTS_SHARD } from '../../domain/journal/journal-row.ts'
import type { ForwardRequest } from '../../domain/relays/forward-request.ts'
import { nextForwardNonce, type RelayEffect } from '../../domain/relays/operation.ts'
import { MOST_OPEN_RELAYS } from '../../domain/session-keys/session-key.ts'
import type { Clock } from '../../service/clock.ts'
import type { Caller } from '../auth/caller.ts'
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

/** Throws if the operation may not be accepted, by the state that the transaction has locked. */
export type CheckEffect = (tx: Tx, open: readonly RelayOperation[]) => Promise<void>

/** The operation of the request: a new one, or that of the same request before. Throws an ApiError if it is refused. */
export type AcceptRelay = (
  caller: Caller,
  operation: NewOperation,
  check: CheckEffect,
) => Promise<RelayOperation>

export const createRelayTables =
  (db: Db, clock: Clock): AcceptRelay =>
  ({ userId }, { effect, request, signature, operationId }, check) =>
    db.transaction().execute(async (tx) => {
      const shard = await lockShard(tx, ACCOUNTS_SHARD)
      await lockAccounts(tx, [userId])
      const known = await findRelayOperation(tx, operationId)
      if (known !== null) return known
      await requireLane(tx, effect)
      const open = await openRelays(tx, request.from)
      checkNonce(request.nonce, await loadForwarderNonce(tx, request.from), open)
      await check(tx, open)
      const stored = { ...columnsOf(effect), ...rowOf(request), signature: signature.toLowerCase() }
      const { operation, row } = await insertRelayOperation(
        tx,
        { operation_id: operationId, user_id: userId, ...stored },
        clock.now(),
      )
      await appendRows(tx, shard, [row])
      return operation
    })

/** A revocation is accepted without a keeper that sends it: from its acceptance on the exchange refuses orders of the key. */
export async function requireLane(tx: Tx, { kind }: RelayEffect): Promise<void> {
  if (kind === 'revoke_session_key' || (await hasLiveLease(tx, RELAY_LANE))) return
  throw new ApiError('RELAY_UNAVAILABLE', {}, '5')
}

/** Nonces execute without gaps, so only the lowest that is free can be accepted. */
function checkNonce(nonce: number, executed: number, open: readonly RelayOperation[]): void {
  const expected = nextForwardNonce(executed, noncesOf(open))
  const context = { field: 'nonce', expected, received: nonce }
  if (nonce < executed) throw new ApiError('FORWARD_NONCE_USED', context)
  const taken = open.find((operation) => operation.nonce === nonce)
  if (taken !== undefined)
    throw new ApiError('FORWARD_NONCE_TAKEN', { ...context, operation_id: taken.operation_id })
  if (nonce !== expected) throw new ApiError('FORWARD_NONCE_GAP', context)
  if (open.length >= MOST_OPEN_RELAYS)
    throw new ApiError('RELAY_LIMIT', { expected: `at most ${MOST_OPEN_RELAYS} open operations` }, '5')
}

export const noncesOf = (open: readonly RelayOperation[]): number[] => open.map(({ nonce }) => nonce)

const rowOf = ({ from, to, ...request }: ForwardRequest) => ({ owner: from, target: to, ...request })

const columnsOf = (
  effect: RelayEffect,
): Pick<NewRelayOperation, 'kind' | 'session_key' | 'market_id' | 'minimum'> =>
  effect.kind === 'invalidate_margin_nonces'
    ? { kind: effect.kind, session_key: null, market_id: effect.marketId, minimum: effect.minimum }
    : { kind: effect.kind, session_key: effect.sessionKey, market_id: null, minimum: null }

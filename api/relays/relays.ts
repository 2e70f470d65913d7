/**
 * Accepts signed forward requests for relaying. A request is stored under the locks of the `accounts` shard and of the account: an order that
 * is accepted later sees a requested revocation. The keeper sends it (`keeper/relays/`), and the indexer ends it.
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
import {
  calldataOf,
  type ForwardRequest,
  hashForwardRequest,
  preparedDeadline,
  REQUEST_GAS,
  recoverForwardSigner,
} from '../../domain/relays/forward-request.ts'
import { nextForwardNonce, type RelayEffect } from '../../domain/relays/operation.ts'
import { MOST_OPEN_RELAYS } from '../../domain/session-keys/session-key.ts'
import type { Address, Seconds } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import { keccak, recover } from '../../service/crypto.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError } from '../errors.ts'
import { checkBounds } from './forward-body.ts'

export interface RelayPorts {
  readonly db: Db
  readonly clock: Clock
  readonly chainId: number
  readonly forwarder: Address
  readonly killPoint: KillPointHook<'after-relay-commit'>
}

export interface SignedForward {
  readonly effect: RelayEffect
  readonly request: ForwardRequest
  readonly signature: string
}

/** Throws if the operation may not be accepted, by the state that the transaction has locked. */
export type CheckEffect = (tx: Tx, open: readonly RelayOperation[]) => Promise<void>

export interface Relays {
  /** A request with this target and effect that the caller can sign now: the same one for minutes, unless another one is accepted. */
  prepare(caller: Caller, target: Address, effect: RelayEffect, check: CheckEffect): Promise<PreparedRequest>
  /** The nonce that the owner's next request must have. */
  nextNonce(owner: Address): Promise<number>
  /** The operation of the request: a new one, or that of the same request before, whatever its state. */
  accept(caller: Caller, signed: SignedForward, check: CheckEffect): Promise<RelayOperation>
}

export interface PreparedRequest {
  readonly request: ForwardRequest
  readonly operationId: string
}

const secondsOf = (clock: Clock): Seconds => Math.floor(clock.now() / 1000) as Seconds

export function createRelays({ db, clock, chainId, forwarder, killPoint }: RelayPorts): Relays {
  const digestOf = (request: ForwardRequest) =>
    hashForwardRequest(request, { chainId: BigInt(chainId), forwarder }, keccak)

  return {
    nextNonce: (owner) => db.transaction().execute((tx) => freeNonce(tx, owner)),

    async prepare({ address: from }, to, effect, check) {
      return db
        .transaction()
        .setIsolationLevel('repeatable read')
        .execute(async (tx) => {
          await requireLane(tx, effect)
          const open = await openRelays(tx, from)
          const data = calldataOf(effect)
          const same = open.find((operation) => operation.target === to && operation.data === data)
          if (same !== undefined) return { request: requestOf(same), operationId: same.operation_id }
          await check(tx, open)
          const nonce = await freeNonce(tx, from)
          const deadline = preparedDeadline(secondsOf(clock))
          const request = { from, to, gas: REQUEST_GAS.prepared, nonce, deadline, data }
          return { request, operationId: digestOf(request) }
        })
    },

    async accept(caller, { effect, request, signature }, check) {
      const operationId = digestOf(request)
      const known = await findRelayOperation(db, operationId)
      if (known !== null) return known
      checkBounds(request, secondsOf(clock))
      checkSignature(request, operationId, signature)
      const accepted = await db.transaction().execute(async (tx) => {
        const shard = await lockShard(tx, ACCOUNTS_SHARD)
        await lockAccounts(tx, [caller.userId])
        const again = await findRelayOperation(tx, operationId)
        if (again !== null) return again
        await requireLane(tx, effect)
        const open = await openRelays(tx, request.from)
        checkNonce(request.nonce, await loadForwarderNonce(tx, request.from), open)
        await check(tx, open)
        const stored = { ...columnsOf(effect), ...rowOf(request), signature: signature.toLowerCase() }
        const { operation, row } = await insertRelayOperation(
          tx,
          { operation_id: operationId, user_id: caller.userId, ...stored },
          clock.now(),
        )
        await appendRows(tx, shard, [row])
        return operation
      })
      killPoint('after-relay-commit')
      return accepted
    },
  }
}

const freeNonce = async (tx: Tx, owner: string): Promise<number> =>
  nextForwardNonce(await loadForwarderNonce(tx, owner), noncesOf(await openRelays(tx, owner)))

/** A revocation is accepted without a keeper that sends it: from its acceptance on the exchange refuses orders of the key. */
async function requireLane(tx: Tx, { kind }: RelayEffect): Promise<void> {
  if (kind === 'revoke_session_key' || (await hasLiveLease(tx, RELAY_LANE))) return
  throw new ApiError('RELAY_UNAVAILABLE', {}, '5')
}

function checkSignature({ from }: ForwardRequest, digest: `0x${string}`, signature: string): void {
  const verdict = recoverForwardSigner(digest, signature, recover)
  if (!verdict.ok) throw new ApiError(verdict.refusal.code, { field: 'signature', ...verdict.refusal })
  if (verdict.value === from) return
  throw new ApiError('FORWARD_SIGNATURE_MISMATCH', {
    ...{ field: 'signature', digest, recovered_signer: verdict.value, expected_signer: from },
  })
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

const noncesOf = (open: readonly RelayOperation[]): number[] => open.map(({ nonce }) => nonce)

const requestOf = (operation: RelayOperation): ForwardRequest => ({
  from: operation.owner as Address,
  to: operation.target as Address,
  gas: operation.gas,
  nonce: operation.nonce,
  deadline: operation.deadline as Seconds,
  data: operation.data as `0x${string}`,
})

const rowOf = ({ from, to, ...request }: ForwardRequest) => ({ owner: from, target: to, ...request })

const columnsOf = (
  effect: RelayEffect,
): Pick<NewRelayOperation, 'kind' | 'session_key' | 'market_id' | 'minimum'> =>
  effect.kind === 'invalidate_margin_nonces'
    ? { kind: effect.kind, session_key: null, market_id: effect.marketId, minimum: effect.minimum }
    : { kind: effect.kind, session_key: effect.sessionKey, market_id: null, minimum: null }

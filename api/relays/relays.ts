/** Accepts signed forward requests for relaying. The keeper sends them (`keeper/relays/`), and the indexer ends them. */
import type { Db, Tx } from '../../db/client.ts'
import { loadForwarderNonce } from '../../db/forwarder-nonces.ts'
import { hasLiveLease } from '../../db/leases.ts'
import { findRelayOperation, openRelays, type RelayOperation } from '../../db/relay-operations.ts'
import { RELAY_LANE } from '../../db/relayers.ts'
import {
  calldataOf,
  type ForwardRequest,
  hashForwardRequest,
  preparedDeadline,
  REQUEST_GAS,
  recoverForwardSigner,
} from '../../domain/relays/forward-request.ts'
import { nextForwardNonce, type RelayEffect } from '../../domain/relays/operation.ts'
import type { Address, Seconds } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import { keccak, recover } from '../../service/crypto.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError } from '../errors.ts'
import type { AcceptRelay, SignedForward } from './engine-relay.ts'
import { checkBounds } from './forward-body.ts'

/** Throws if a request with the effect would be refused, by the state that the transaction reads. */
export type CheckEffect = (tx: Tx, open: readonly RelayOperation[]) => Promise<void>

export interface RelayPorts {
  readonly db: Db
  readonly clock: Clock
  readonly chainId: number
  readonly forwarder: Address
  readonly killPoint: KillPointHook<'after-relay-commit'>
  /** Decides and stores an operation. */
  readonly acceptRelay: AcceptRelay
}

export interface Relays {
  /**
   * A request with this target and effect for the caller to sign. It stays the same for minutes, unless the caller's
   * next request is accepted.
   */
  prepare(caller: Caller, target: Address, effect: RelayEffect, check: CheckEffect): Promise<PreparedRequest>
  /** The nonce that the owner's next request must have. */
  nextNonce(owner: Address): Promise<number>
  /** The request's operation: new, or created earlier by the same request, in any state. */
  accept(caller: Caller, signed: SignedForward): Promise<RelayOperation>
}

export interface PreparedRequest {
  readonly request: ForwardRequest
  readonly operationId: string
}

const secondsOf = (clock: Clock): Seconds => Math.floor(clock.now() / 1000) as Seconds

export function createRelays({ db, clock, chainId, forwarder, killPoint, acceptRelay }: RelayPorts): Relays {
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

    async accept(caller, { effect, request, signature }) {
      const operationId = digestOf(request)
      const known = await findRelayOperation(db, operationId)
      if (known !== null) return known
      checkBounds(request, secondsOf(clock))
      checkSignature(request, operationId, signature)
      const accepted = await acceptRelay(caller, { effect, request, signature, operationId })
      killPoint('after-relay-commit')
      return accepted
    },
  }
}

const freeNonce = async (tx: Tx, owner: string): Promise<number> =>
  nextForwardNonce(
    await loadForwarderNonce(tx, owner),
    (await openRelays(tx, owner)).map(({ nonce }) => nonce),
  )

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

const requestOf = (operation: RelayOperation): ForwardRequest => ({
  from: operation.owner as Address,
  to: operation.target as Address,
  gas: operation.gas,
  nonce: operation.nonce,
  deadline: operation.deadline as Seconds,
  data: operation.data as `0x${string}`,
})

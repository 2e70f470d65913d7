/** Relays signed requests of owners to the forwarder. The states and their laws are in README.md. */

import { type Fence, LeaseLost } from '../../db/fence.ts'
import type { Address } from '../../domain/units.ts'
import { type Clock, elapsed } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Logger } from '../../service/logger.ts'
import type { Call, Calls, Chain, Fee, Signer } from '../ports.ts'
import type { Delivery } from '../relayer/delivery.ts'
import type { RelayerLane, RelayerStore } from '../relayer/ports.ts'
import type { RelayEnd, RelayOperation, RelayStore, UnexecutedRelay } from './ports.ts'

export interface RelayPorts {
  readonly store: RelayStore
  readonly relayers: Pick<RelayerStore, 'reserve' | 'open'>
  readonly delivery: Pick<Delivery, 'start' | 'check' | 'recoverIfDue'>
  readonly chain: Pick<Chain, 'dryRun' | 'findCulprit'>
  readonly signer: Signer
  readonly calls: Pick<Calls, 'forward'>
  readonly clock: Clock
  readonly logger: Logger
  readonly fee: () => Fee
  readonly killPoint: KillPointHook<'after-relay-storing'>
  readonly forwarder: Address
}

/** Maximum operations that a pass signs. */
const SIGNED_PER_PASS = 20
/** Maximum operations that a pass considers or ends. */
const PER_PASS = 100
const MOST_IN_FLIGHT = 64
/** Until an operation whose turn has not come on the chain is simulated again. */
const RETRY_MS = 1_000

/** Above what a transaction costs before its call. */
const INTRINSIC_GAS = 100_000

/** The request's nonce is not the chain's next nonce, or the node's time is too early: later passes decide. */
const NOT_ITS_TURN = /^ERC2771Forwarder(InvalidSigner|ExpiredRequest)\(/

export type RelayPass = (fence: Fence) => Promise<'idle' | 'waiting'>

export function createRelays(ports: RelayPorts, lane: RelayerLane): RelayPass {
  const { store, relayers, delivery, logger } = ports
  /** When operations were tried that have to wait. */
  const postponed = new Map<string, number>()

  const isPostponed = ({ operation_id }: RelayOperation): boolean =>
    elapsed(ports.clock, postponed.get(operation_id) ?? Number.NEGATIVE_INFINITY) < RETRY_MS

  /** Returns whether one may have been sent. */
  async function sendReady(fence: Fence, inFlight: number): Promise<boolean> {
    const most = Math.min(SIGNED_PER_PASS, MOST_IN_FLIGHT - inFlight)
    if (most <= 0) return false
    const found = await store.ready(PER_PASS)
    for (const id of postponed.keys())
      if (!found.some((each) => each.operation_id === id)) postponed.delete(id)
    const ready = found.filter((each) => !isPostponed(each)).slice(0, most)
    for (const operation of ready) await attempt(operation, () => sendOrFail(operation, fence))
    return ready.length > 0
  }

  /** A failed operation does not hold up other operations. */
  async function attempt(operation: RelayOperation, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (err) {
      if (err instanceof LeaseLost) throw err
      postponed.set(operation.operation_id, ports.clock.now())
      logger.warn({ operation_id: operation.operation_id, err }, 'relaying a request failed; will retry')
    }
  }

  async function sendOrFail(operation: RelayOperation, fence: Fence): Promise<void> {
    const refusal = await simulate(ports, operation)
    if (refusal === null) await send(operation, fence)
    else if (refusal === 'later') postponed.set(operation.operation_id, ports.clock.now())
    else await fail(operation, fence, refusal)
  }

  async function send(operation: RelayOperation, fence: Fence): Promise<void> {
    const nonce = await relayers.reserve(lane, fence, 1)
    const signed = await ports.signer.sign(callOf(ports, operation), nonce, ports.fee())
    const signedAt = ports.clock.now()
    const stored = await store.storeSigned(operation, lane, fence, { ...signed, nonce, signedAt })
    if (stored === null) return
    ports.killPoint('after-relay-storing')
    delivery.start(stored)
  }

  async function fail(operation: RelayOperation, fence: Fence, end: RelayEnd): Promise<void> {
    await store.fail(operation, fence, end)
    logger.warn({ operation_id: operation.operation_id, kind: operation.kind, ...end }, 'relay failed')
  }

  async function resolve({ operation, reverted }: UnexecutedRelay, fence: Fence): Promise<void> {
    if (reverted === null) return store.requeue(operation, fence)
    const { error } = await ports.chain.findCulprit(reverted.raw, reverted.block)
    if (NOT_ITS_TURN.test(error)) return store.requeue(operation, fence)
    const reason = (await simulatedCall(ports, operation)) ?? error
    await fail(operation, fence, { failure: 'REVERTED', reason })
  }

  return async (fence) => {
    const before = await relayers.open(lane)
    const hasSent = await sendReady(fence, before.length)
    const open = hasSent ? await relayers.open(lane) : before
    await delivery.recoverIfDue(fence, open.length > 0)
    await delivery.check(fence, open, () => false)
    for (const unexecuted of await store.unexecuted(lane, PER_PASS))
      await attempt(unexecuted.operation, () => resolve(unexecuted, fence))
    return open.length > 0 ? 'waiting' : 'idle'
  }
}

const callOf = ({ calls, forwarder }: RelayPorts, operation: RelayOperation): Call =>
  calls.forward(forwarder, operation)

/** Null if the transaction would succeed at the head. */
async function simulate(ports: RelayPorts, operation: RelayOperation): Promise<RelayEnd | 'later' | null> {
  const error = await ports.chain.dryRun(callOf(ports, operation), ports.signer.address)
  if (error === null) return null
  if (NOT_ITS_TURN.test(error)) return 'later'
  return { failure: 'REVERTED', reason: (await simulatedCall(ports, operation)) ?? error }
}

/** The error of the forwarded call, which the forwarder's own error does not contain; null if the call would succeed now. */
const simulatedCall = (
  { chain, forwarder }: RelayPorts,
  { target, data, owner, gas }: RelayOperation,
): Promise<string | null> =>
  chain.dryRun(
    {
      to: target as Address,
      data: `${data}${owner.slice(2)}` as `0x${string}`,
      value: 0n,
      gas: BigInt(gas + INTRINSIC_GAS),
    },
    forwarder,
  )

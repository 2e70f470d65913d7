/**
 * Sends heartbeats to markets without a recent action, and at once after a freeze request, so that no account can
 * freeze a market. Their own lane keeps them from waiting behind stuck actions.
 */

import type { Fence } from '../../db/fence.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { MarketId, Millis } from '../../domain/units.ts'
import { type Clock, elapsed } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { Calls, Chain, Fee, Liveness, Metrics, Signer } from '../ports.ts'
import type { Delivery } from '../relayer/delivery.ts'
import type { RelayerLane, RelayerStore } from '../relayer/ports.ts'
import { asSigned } from '../relayer/stored-transaction.ts'
import { createFreezeWatch } from './freeze-watch.ts'

export interface HeartbeatPorts {
  readonly relayers: RelayerStore
  readonly delivery: Pick<Delivery, 'start' | 'check' | 'recoverIfDue'>
  readonly chain: Pick<Chain, 'liveness' | 'head' | 'freezeRequests'>
  readonly signer: Signer
  readonly calls: Pick<Calls, 'heartbeat'>
  readonly clock: Clock
  readonly metrics: Pick<Metrics, 'freezeRequested' | 'freezePending'>
  readonly logger: Logger
  readonly fee: () => Fee
  readonly markets: () => Promise<readonly MarketSpec[]>
}

/** Far below the day of silence after which any account may freeze a market. */
export const HEARTBEAT_AFTER_MS = 3_600_000
/** A heartbeat that did not help, because it reverted, is not repeated earlier. */
const RETRY_AFTER_MS = 600_000
/** A request counts until block time is behind it, so the first heartbeat may be too early by a second. */
const REQUEST_RETRY_MS = 1_000
/** Interval at which every market is read: two views each. */
const SWEEP_MS = 60_000

/** `waiting`: a transaction is open, or a freeze request is not void yet. */
type Progress = 'idle' | 'waiting'

export interface Heartbeats {
  /** Reads every market. */
  pass(fence: Fence): Promise<Progress>
  /** Reads the markets with a freeze request, and every market once a minute. */
  watch(fence: Fence): Promise<Progress>
}

export function createHeartbeats(ports: HeartbeatPorts, lane: RelayerLane): Heartbeats {
  const { relayers, delivery, chain, signer, calls, clock, logger, fee } = ports
  const search = createFreezeWatch(chain)
  const attempts = new Map<MarketId, Millis>()
  /** Freeze requests that are not void, by market. */
  const requests = new Map<MarketId, Millis>()
  let sweptAt = Number.NEGATIVE_INFINITY

  function noteRequest({ marketId }: MarketSpec, { requestedAt, isRequested }: Liveness): void {
    if (isRequested && requests.get(marketId) !== requestedAt) {
      logger.error({ market_id: marketId, requested_at: requestedAt }, 'freeze of the market requested')
      ports.metrics.freezeRequested(marketId)
    }
    if (isRequested) requests.set(marketId, requestedAt)
    else requests.delete(marketId)
    ports.metrics.freezePending(marketId, isRequested)
  }

  async function isDue(spec: MarketSpec): Promise<boolean> {
    const liveness = await chain.liveness(spec.trader)
    noteRequest(spec, liveness)
    if (liveness.isEnded) return false
    const now = clock.now()
    const since = now - (attempts.get(spec.marketId) ?? Number.NEGATIVE_INFINITY)
    if (liveness.isRequested) return since >= REQUEST_RETRY_MS
    return since >= RETRY_AFTER_MS && now - liveness.aliveAt >= HEARTBEAT_AFTER_MS
  }

  async function send(spec: MarketSpec, fence: Fence): Promise<void> {
    const nonce = await relayers.reserve(lane, fence, 1)
    const signed = await signer.sign(calls.heartbeat(spec.trader), nonce, fee())
    const transaction = { ...signed, nonce, purpose: 'heartbeat', signedAt: clock.now() }
    await relayers.addSigned(fence, lane, transaction)
    const details = { market_id: spec.marketId, tx_hash: signed.hash }
    if (attempts.has(spec.marketId) && !requests.has(spec.marketId))
      logger.warn(details, 'heartbeat sent; the market was silent after the last one')
    else logger.info(details, 'heartbeat sent')
    attempts.set(spec.marketId, clock.now())
    delivery.start(asSigned(lane, transaction))
  }

  /** A market that cannot be read does not delay the heartbeats of other markets. */
  async function visit(markets: readonly MarketSpec[], fence: Fence): Promise<void> {
    let failure: unknown = null
    for (const spec of markets) {
      const due = await isDue(spec).catch((error: unknown) => {
        failure = error
        return false
      })
      if (due) await send(spec, fence)
    }
    if (failure !== null) throw failure
  }

  async function run(fence: Fence, chosen: readonly MarketSpec[]): Promise<Progress> {
    const before = await relayers.open(lane)
    await delivery.recoverIfDue(fence, before.length > 0)
    await delivery.check(fence, before, () => false)
    await visit(chosen, fence)
    return requests.size > 0 || (await relayers.open(lane)).length > 0 ? 'waiting' : 'idle'
  }

  return {
    pass: async (fence) => run(fence, await ports.markets()),
    async watch(fence) {
      const markets = await ports.markets()
      const found = await search(markets)
      const isSweep = found === 'unknown' || elapsed(clock, sweptAt) >= SWEEP_MS
      const requested = found === 'unknown' ? [] : found
      const chosen = isSweep
        ? markets
        : markets.filter((spec) => requests.has(spec.marketId) || requested.includes(spec))
      const progress = await run(fence, chosen)
      if (isSweep) sweptAt = clock.now()
      return progress
    },
  }
}

/**
 * Sends heartbeats to markets without a recent action, so that no account can freeze them. Heartbeats have no action id and a relayer lane
 * of their own: they never wait behind an action that is stuck.
 */

import type { Fence } from '../../db/fence.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { MarketId, Millis } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { Calls, Chain, Fee, Signer } from '../ports.ts'
import type { Delivery } from '../relayer/delivery.ts'
import type { RelayerLane, RelayerStore } from '../relayer/ports.ts'
import { asSigned } from '../relayer/stored-transaction.ts'

export interface HeartbeatPorts {
  readonly relayers: RelayerStore
  readonly delivery: Pick<Delivery, 'start' | 'check' | 'recoverIfDue'>
  readonly chain: Pick<Chain, 'liveness'>
  readonly signer: Signer
  readonly calls: Pick<Calls, 'heartbeat'>
  readonly clock: Clock
  readonly logger: Logger
  readonly fee: () => Fee
  readonly markets: () => Promise<readonly MarketSpec[]>
}

/** Far below the day of silence after which any account may freeze a market. */
export const HEARTBEAT_AFTER_MS = 3_600_000
/** A heartbeat that did not help, because it reverted, is not repeated earlier. */
const RETRY_AFTER_MS = 600_000

/** Returns a pass over all markets. Each pass reads from the contracts when their operator was last alive. */
export function createHeartbeats(ports: HeartbeatPorts, lane: RelayerLane) {
  const { relayers, delivery, chain, signer, calls, clock, logger, fee } = ports
  const attempts = new Map<MarketId, Millis>()

  async function isDue({ marketId, trader }: MarketSpec): Promise<boolean> {
    const now = clock.now()
    if (now - (attempts.get(marketId) ?? Number.NEGATIVE_INFINITY) < RETRY_AFTER_MS) return false
    const { aliveAt, isEnded } = await chain.liveness(trader)
    return !isEnded && now - aliveAt >= HEARTBEAT_AFTER_MS
  }

  async function send(spec: MarketSpec, fence: Fence): Promise<void> {
    const nonce = await relayers.reserve(lane, fence, 1)
    const signed = await signer.sign(calls.heartbeat(spec.trader), nonce, fee())
    const transaction = { ...signed, nonce, purpose: 'heartbeat', signedAt: clock.now() }
    await relayers.addSigned(fence, lane, transaction)
    const details = { market_id: spec.marketId, tx_hash: signed.hash }
    if (attempts.has(spec.marketId))
      logger.warn(details, 'heartbeat sent; the market was silent after the last one')
    else logger.info(details, 'heartbeat sent')
    attempts.set(spec.marketId, clock.now())
    delivery.start(asSigned(transaction))
  }

  /** `waiting`: a transaction is open, so the next pass is due soon. */
  return async (fence: Fence): Promise<'idle' | 'waiting'> => {
    const before = await relayers.open(lane)
    await delivery.recoverIfDue(fence, before.length > 0)
    await delivery.check(fence, before, () => false)
    for (const spec of await ports.markets()) if (await isDue(spec)) await send(spec, fence)
    return (await relayers.open(lane)).length > 0 ? 'waiting' : 'idle'
  }
}

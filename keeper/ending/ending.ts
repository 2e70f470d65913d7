/** Ends all closed markets and pays out their accounts, from a relayer lane of its own: every account may call what it sends. */
import type { Fence } from '../../db/fence.ts'
import type { Millis } from '../../domain/units.ts'
import type { Delivery } from '../relayer/delivery.ts'
import type { RelayerLane, RelayerStore } from '../relayer/ports.ts'
import { createFinalPrices, type FinalPricePorts } from './final-price.ts'
import { createPayouts, type PayoutPorts } from './payouts.ts'
import { createSend, type SenderPorts } from './sender.ts'

export interface EndingPorts extends FinalPricePorts, PayoutPorts, SenderPorts {
  readonly chain: FinalPricePorts['chain'] & PayoutPorts['chain']
  readonly calls: FinalPricePorts['calls'] & PayoutPorts['calls']
  readonly relayers: RelayerStore
  readonly delivery: Pick<Delivery, 'start' | 'check' | 'recoverIfDue'>
  /** Block time of the chain's head; null while no node responds. */
  readonly headTime: () => Millis | null
}

/** Most transactions that are open at a time; nodes bound those of one sender. */
const MOST_OPEN = 50

/** One pass over all markets that are ending. `waiting`: transactions are open. */
export function createEndings(
  ports: EndingPorts,
  lane: RelayerLane,
): (fence: Fence) => Promise<'idle' | 'waiting'> {
  const { store, relayers, delivery, headTime, logger } = ports
  const send = createSend(ports, lane)
  const finalPrices = createFinalPrices(ports, lane, send)
  const visitEnded = createPayouts(ports, lane, send)

  /** A market whose end fails does not delay the end of other markets. */
  async function visitAll(fence: Fence, blockTime: Millis, open: number): Promise<void> {
    let capacity = MOST_OPEN - open
    let failure: unknown = null
    const markets = await store.markets(blockTime)
    const closed = markets.filter(({ finalPrice }) => finalPrice === null)
    finalPrices.retain(new Set(closed.map(({ spec }) => spec.marketId)))
    for (const market of markets) {
      try {
        if (market.finalPrice === null) await finalPrices.visit(fence, market, blockTime)
        else capacity -= await visitEnded(fence, market, blockTime, capacity)
      } catch (err) {
        logger.error({ market_id: market.spec.marketId, err }, 'the end of a market failed; will retry')
        failure = err
      }
    }
    if (failure !== null) throw failure
  }

  return async (fence) => {
    const before = await relayers.open(lane)
    await delivery.recoverIfDue(fence, before.length > 0)
    await delivery.check(fence, before, () => false)
    const blockTime = headTime()
    const { length } = await relayers.open(lane)
    if (blockTime !== null) await visitAll(fence, blockTime, length)
    return (await relayers.open(lane)).length > 0 ? 'waiting' : 'idle'
  }
}

/** The turns of a keeper on a market with a chain, without marks: liquidations, then the auction, with one memory. */
import type { Fence } from '../../../db/fence.ts'
import { hashOrder } from '../../../domain/orders/order-hash.ts'
import type { Millis } from '../../../domain/units.ts'
import { createAuction } from '../../../keeper/auction/auction.ts'
import { createMarketMemory } from '../../../keeper/auction/market-memory.ts'
import { createAuctionStore } from '../../../keeper/auction/store.ts'
import { createLiquidations } from '../../../keeper/liquidation/liquidations.ts'
import { createLiquidationStore } from '../../../keeper/liquidation/store.ts'
import type { ChainFixture } from './chain-fixture.ts'
import { keccak, NO_METRICS, RULES } from './market-fixture.ts'

export interface MarketLoop {
  turn(): Promise<void>
  /** The auction alone. Returns the number of its batch; null if it matched nothing. */
  auction(): Promise<number | null>
}

/** A keeper that starts: it remembers nothing. */
export function startMarketLoop(fixture: ChainFixture, fence: Fence): MarketLoop {
  const { db, spec, chainSide } = fixture
  let head: Millis | null = null
  const headTime = () => head
  const memory = createMarketMemory({ ...RULES, kind: spec.kind })
  const auction = createAuction(
    { ...fixture.auctionPorts(), store: createAuctionStore(db), headTime },
    spec,
    memory,
  )
  const liquidations = createLiquidations(
    {
      liquidations: createLiquidationStore(db),
      ...{ headTime, killPoint: () => {}, wakeSettlement: () => {}, metrics: NO_METRICS },
      hashOrder: (order, of) => hashOrder(order, of, keccak),
    },
    spec,
    memory,
  )
  const seeHead = async (): Promise<void> => {
    const block = await chainSide.provider.getBlock('latest')
    head = ((block?.timestamp ?? 0) * 1000) as Millis
  }
  return {
    async turn() {
      await seeHead()
      await liquidations.update(fence)
      await auction.run(fence)
    },
    async auction() {
      await seeHead()
      return auction.run(fence)
    },
  }
}

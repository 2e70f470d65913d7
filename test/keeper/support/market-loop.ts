/** The turns of a market with a chain, without marks: liquidations, then the auction, with one memory. */
import type { ChainFixture } from './chain-fixture.ts'
import { createAuction, createLiquidations, createMarketMemory } from './engine-turns.ts'
import { RULES } from './market-fixture.ts'

export interface MarketLoop {
  turn(): Promise<void>
  /** The auction alone. Returns the number of its batch; null if it matched nothing. */
  auction(): Promise<number | null>
}

/** An owner that starts: it remembers nothing. */
export function startMarketLoop(fixture: ChainFixture): MarketLoop {
  const { spec } = fixture
  const memory = createMarketMemory({ ...RULES, kind: spec.kind })
  const auction = createAuction(fixture.turnPorts(), spec, memory)
  const liquidations = createLiquidations(fixture.turnPorts(), spec, memory)
  return {
    async turn() {
      await fixture.readHead()
      await liquidations.update()
      await auction.run()
    },
    async auction() {
      await fixture.readHead()
      return auction.run()
    },
  }
}

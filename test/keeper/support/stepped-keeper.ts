import type { Fence } from '../../../db/fence.ts'
import { hashOrder } from '../../../domain/orders/order-hash.ts'
import type { Millis } from '../../../domain/units.ts'
import { createAuction } from '../../../keeper/auction/auction.ts'
import { createMarketMemory } from '../../../keeper/auction/market-memory.ts'
import type { AuctionStore } from '../../../keeper/auction/ports.ts'
import { createLiquidations } from '../../../keeper/liquidation/liquidations.ts'
import { createLiquidationStore } from '../../../keeper/liquidation/store.ts'
import { createMarks } from '../../../keeper/marks/marks.ts'
import type * as comparedTurns from './compared-turns.ts'
import { keccak, type MarketFixture, RULES } from './market-fixture.ts'

class PowerCut extends Error {}

/** How the jobs of a market are created: with comparisons, or without. */
type Jobs = Pick<typeof comparedTurns, 'createAuction' | 'createMarks' | 'createLiquidations'>

const PLAIN: Jobs = { createAuction, createMarks, createLiquidations }

/** What a keeper process does for a market every 200 ms, with a memory of its own, and a power supply that a test can cut. */
export class SteppedKeeper {
  readonly store: AuctionStore
  readonly memory
  readonly #fence: Fence
  readonly #marks
  readonly #liquidations
  readonly #auction
  /** In which transaction from here the power goes; 0: in none. */
  cutAt = 0

  /** `skewMs`: how far the keeper's system clock is ahead of the database's. */
  constructor(fixture: MarketFixture, fence: Fence, skewMs = 0, jobs: Jobs = PLAIN) {
    const clock = { now: () => (fixture.clock.now() + skewMs) as Millis }
    const ports = { ...fixture.auctionPorts(), clock }
    this.store = {
      snapshot: (spec) => ports.store.snapshot(spec),
      averages: (marketId) => ports.store.averages(marketId),
      transaction: (spec, own, work) =>
        ports.store.transaction(spec, own, async (transaction) => {
          const done = await work(transaction)
          if (this.cutAt > 0 && --this.cutAt === 0) throw new PowerCut()
          return done
        }),
    }
    this.#fence = fence
    this.memory = createMarketMemory({ ...RULES, kind: fixture.spec.kind })
    this.#marks = jobs.createMarks({ ...ports, store: this.store }, fixture.spec, this.memory)
    const liquidations = createLiquidationStore(fixture.db, fixture.databaseTime)
    this.#liquidations = jobs.createLiquidations(
      {
        ...{ ...ports, liquidations, killPoint: () => {}, wakeSettlement: () => {} },
        hashOrder: (order, spec) => hashOrder(order, spec, keccak),
      },
      fixture.spec,
      this.memory,
    )
    this.#auction = jobs.createAuction({ ...ports, store: this.store }, fixture.spec, this.memory)
  }

  /** Whether the power went. */
  async step(): Promise<boolean> {
    try {
      await this.#marks.update(this.#fence)
      await this.#liquidations.update(this.#fence)
      await this.#auction.run(this.#fence)
      return false
    } catch (error) {
      if (error instanceof PowerCut) return true
      throw error
    }
  }
}

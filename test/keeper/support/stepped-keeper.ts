import type { MarketSnapshot } from '../../../domain/auction/market-snapshot.ts'
import { TurnContext } from '../../../domain/exchange/decide/turn/context.ts'
import { AdoptingEngine } from '../../support/adopting-engine.ts'
import { createAuction, createLiquidations, createMarketMemory, createMarks } from './engine-turns.ts'
import { type MarketFixture, RULES } from './market-fixture.ts'

class PowerCut extends Error {}

/** What an owner does for a market every 200 ms, with a memory of its own, and a power supply that a test can cut. */
export class SteppedKeeper {
  readonly memory
  readonly #fixture: MarketFixture
  readonly #engine: AdoptingEngine
  readonly #marks
  readonly #liquidations
  readonly #auction
  /** In which step with rows from here the power goes; 0: in none. After a cut another keeper starts. */
  cutAt = 0

  constructor(fixture: MarketFixture) {
    const { spec } = fixture
    this.#fixture = fixture
    this.#engine = new AdoptingEngine(fixture.db, {
      ...fixture.times(),
      beforeCommit: () => {
        if (this.cutAt > 0 && --this.cutAt === 0) throw new PowerCut()
      },
    })
    const ports = { ...fixture.turnPorts(), engine: this.#engine }
    this.memory = createMarketMemory({ ...RULES, kind: spec.kind })
    this.#marks = createMarks(ports, spec, this.memory)
    this.#liquidations = createLiquidations(ports, spec, this.memory)
    this.#auction = createAuction(ports, spec, this.memory)
  }

  snapshot(): Promise<MarketSnapshot> {
    const { marketId } = this.#fixture.spec
    return this.#engine.decide((draft, inputs) => new TurnContext(draft, inputs, marketId).snapshot)
  }

  /** Whether the power went. */
  async step(): Promise<boolean> {
    try {
      await this.#marks.update()
      await this.#liquidations.update()
      await this.#auction.run()
      return false
    } catch (error) {
      if (error instanceof PowerCut) return true
      throw error
    }
  }
}

/** The steps of a market's turn, one at a time, as the engine decides them on what the test's database has. */
import { ATTEMPTS } from '../../../domain/auction/auction-turn.ts'
import { attemptAuction } from '../../../domain/exchange/decide/turn/auction.ts'
import { TurnContext } from '../../../domain/exchange/decide/turn/context.ts'
import { updateLiquidations } from '../../../domain/exchange/decide/turn/liquidation.ts'
import { updateMark } from '../../../domain/exchange/decide/turn/mark.ts'
import { NO_MEMORY, type TurnMemory } from '../../../domain/exchange/decide/turn/memory.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { ReportRules } from '../../../domain/prices/report.ts'
import type { Millis } from '../../../domain/units.ts'
import type { AdoptingEngine } from '../../support/adopting-engine.ts'

/** Passed on from turn to turn of one owner. */
export interface MarketMemory {
  /** The contract's rules for reports; null: they are not fetched yet. */
  rules: ReportRules | null
  turn: TurnMemory
}

export const createMarketMemory = (rules: ReportRules | null = null): MarketMemory => ({
  rules,
  turn: NO_MEMORY,
})

export interface TurnPorts {
  readonly engine: AdoptingEngine
  readonly headTime: () => Millis | null
}

interface Step {
  readonly memory: TurnMemory
}

/** One step, whose memory the next one gets. */
class Stepper<Answer extends Step> {
  readonly #ports: TurnPorts
  readonly #spec: MarketSpec
  readonly #memory: MarketMemory
  readonly #step: (context: TurnContext, before: TurnMemory) => Answer

  constructor(
    ports: TurnPorts,
    spec: MarketSpec,
    memory: MarketMemory,
    step: (context: TurnContext, before: TurnMemory) => Answer,
  ) {
    this.#ports = ports
    this.#spec = spec
    this.#memory = memory
    this.#step = step
  }

  async take(): Promise<Answer> {
    const { engine, headTime } = this.#ports
    const { rules, turn } = this.#memory
    const answer = await engine.decide((draft, given) => {
      const inputs = { ...given, reportRules: () => rules, headTime: headTime() }
      return this.#step(new TurnContext(draft, inputs, this.#spec.marketId), turn)
    }, this.#spec)
    this.#memory.turn = answer.memory
    return answer
  }
}

export interface Auction {
  /** The number of the batch; null without one. */
  run(): Promise<number | null>
}

export function createAuction(ports: TurnPorts, spec: MarketSpec, memory: MarketMemory): Auction {
  const step = new Stepper(ports, spec, memory, (context, before) => {
    const attempt = attemptAuction(context, before)
    const { batchId, inputs } = attempt
    if (batchId !== null && inputs !== null) ports.engine.keepInputs(spec.marketId, batchId, inputs)
    return attempt
  })
  return {
    async run() {
      for (let attempts = 1; ; attempts++) {
        const { batchId, isRepeated } = await step.take()
        if (!isRepeated || attempts === ATTEMPTS) return batchId
      }
    },
  }
}

export interface Marks {
  update(): Promise<void>
}

export function createMarks(ports: TurnPorts, spec: MarketSpec, memory: MarketMemory): Marks {
  const step = new Stepper(ports, spec, memory, updateMark)
  return {
    async update() {
      await step.take()
    },
  }
}

export interface Liquidations {
  /** Reasons of failed liquidations. */
  update(): Promise<readonly string[]>
}

export function createLiquidations(ports: TurnPorts, spec: MarketSpec, memory: MarketMemory): Liquidations {
  const step = new Stepper(ports, spec, memory, (context, before) =>
    updateLiquidations(context, before, ports.engine.hashOrder),
  )
  return {
    update: async () => (await step.take()).failures,
  }
}

/** Sends the engine the contract's rules for reports of a market. They are fetched once, and repeated for new owners of the engine. */
import { reportRulesFor } from '../../domain/market/in-force.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { ReportRules } from '../../domain/prices/report.ts'
import { type BackgroundPorts, BackgroundTask } from '../background-task.ts'
import type { Engine } from '../engine/link/engine.ts'
import type { Chain } from '../ports.ts'

export interface RulesInformerPorts extends BackgroundPorts {
  readonly engine: Pick<Engine, 'inform'>
  readonly chain: Pick<Chain, 'reportRules'>
}

const REPEAT_MS = 2_000

export interface RulesInformer {
  /** Informs in the background if it is due. */
  poll(): void
  settled(): Promise<void>
}

export function createRulesInformer(ports: RulesInformerPorts, spec: MarketSpec): RulesInformer {
  const { engine, chain } = ports
  const { marketId } = spec
  const failure = 'fetching the oracle report rules failed; will retry'
  const task = new BackgroundTask(ports, failure, { market_id: marketId })
  let rules: ReportRules | null = null
  return {
    poll: () =>
      task.poll(REPEAT_MS, async () => {
        rules ??= reportRulesFor(spec, await chain.reportRules(spec.trader))
        await engine.inform({ kind: 'inform_rules', marketId, rules })
      }),
    settled: () => task.settled(),
  }
}

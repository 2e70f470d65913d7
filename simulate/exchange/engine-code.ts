/** The code of the engine that a run uses: the real one, or a copy with an injected fault. */
import { join } from 'node:path'
import type { startMember } from '../../keeper/engine/member.ts'
import type { AppendUnknown, ContentRejected, JournalUnavailable } from '../../keeper/engine/ports.ts'
import type { Scenario } from './scenario.ts'

export interface EngineErrors {
  readonly AppendUnknown: typeof AppendUnknown
  readonly ContentRejected: typeof ContentRejected
  readonly JournalUnavailable: typeof JournalUnavailable
}

export interface EngineCode extends EngineErrors {
  readonly startMember: typeof startMember
}

/** Imports the engine from a root that holds `keeper/engine/`. */
export async function loadEngine(root: string): Promise<EngineCode> {
  const folder = join(root, 'keeper/engine')
  const [member, ports] = await Promise.all([import(`${folder}/member.ts`), import(`${folder}/ports.ts`)])
  return { startMember: member.startMember, ...ports }
}

export const SCENARIOS = ['ledger', 'trading'] as const
export type ScenarioName = (typeof SCENARIOS)[number]

/** Imports a scenario, with the rules that it runs, from a root that holds `domain/`, `keeper/engine/` and `simulate/`. */
export async function loadScenario(
  root: string,
  name: ScenarioName,
): Promise<() => Scenario<unknown, unknown, unknown>> {
  const module = await import(join(root, `simulate/exchange/${name}/scenario.ts`))
  return name === 'ledger' ? module.ledgerScenario : module.tradingScenario
}

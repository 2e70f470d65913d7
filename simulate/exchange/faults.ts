/**
 * Faults of the code, each of which the simulation must find. A fault replaces one passage of one file; `seed`
 * is a run that finds it. `npm run simulate:exchange -- --faults` checks all of them.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type EngineCode, loadEngine, loadScenario } from './engine-code.ts'
import type { Fault } from './fault.ts'
import { LEDGER_FAULTS } from './ledger/fault-list.ts'
import { type RunOptions, runExchange } from './run.ts'
import type { Scenario } from './scenario.ts'
import { TRADING_FAULTS } from './trading/fault-list.ts'

export const FAULTS: readonly Fault[] = [...LEDGER_FAULTS, ...TRADING_FAULTS]

/** The code of a run; everything else is shared with the original. */
const COPIED = ['domain', 'keeper/engine', 'simulate/exchange', 'simulate/scenarios.ts', 'simulate/random.ts']

/** Throws if the passage does not stand exactly once in its file: the list must follow the code. */
function mutated(text: string, { name, file, passage, replacement }: Fault): string {
  const count = text.split(passage).length - 1
  if (count !== 1)
    throw new Error(`fault "${name}": its passage stands ${count} times in ${file}, expected once`)
  return text.replace(passage, () => replacement)
}

interface FaultyCode {
  readonly engine: EngineCode
  readonly scenario: () => Scenario<unknown, unknown, unknown>
}

/** Runs `work` with a copy of the code that has the fault. */
async function withFault<Result>(fault: Fault, work: (code: FaultyCode) => Promise<Result>): Promise<Result> {
  const root = mkdtempSync(join(tmpdir(), 'engine-fault-'))
  try {
    for (const part of COPIED) cpSync(resolve(part), join(root, part), { recursive: true })
    symlinkSync(resolve('node_modules'), join(root, 'node_modules'))
    writeFileSync(join(root, 'package.json'), '{ "type": "module" }')
    const file = join(root, fault.file)
    writeFileSync(file, mutated(readFileSync(file, 'utf8'), fault))
    const [engine, scenario] = await Promise.all([loadEngine(root), loadScenario(root, fault.scenario)])
    return await work({ engine, scenario })
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

export interface FaultFinding {
  readonly fault: Fault
  /** The first violation of the first seed that has any; null if none has. */
  readonly violation: string | null
  readonly seed: number
}

/** Events of a run that has to find a fault. */
const FAULT_EVENTS = { ledger: 12_000, trading: 5_000 } as const

/** Runs the fault's own seed, or searches for one from 1 to `search`. */
export const findFault = (fault: Fault, search: number | null = null): Promise<FaultFinding> =>
  withFault(fault, async (code) => {
    const seeds = search === null ? [fault.seed] : Array.from({ length: search }, (_, at) => at + 1)
    for (const seed of seeds) {
      const violation = await firstViolation(code, { seed, events: FAULT_EVENTS[fault.scenario] })
      if (violation !== null) return { fault, violation, seed }
    }
    return { fault, violation: null, seed: fault.seed }
  })

async function firstViolation({ engine, scenario }: FaultyCode, options: RunOptions): Promise<string | null> {
  try {
    const { violations } = await runExchange(engine, scenario(), options)
    return violations[0] ?? null
  } catch (error) {
    return `the run failed: ${error instanceof Error ? error.message : error}`
  }
}

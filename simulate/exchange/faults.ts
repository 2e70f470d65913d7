/**
 * Faults of the engine's code, each of which the simulation must find. A fault replaces one passage of one file; `seed`
 * is a run that finds it. `npm run simulate:exchange -- --faults` checks all of them.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type EngineCode, loadEngine } from './engine-code.ts'
import type { Fault } from './fault-list.ts'
import { runExchange } from './run.ts'

const ENGINE = resolve('keeper/engine')

/** Throws if the passage does not stand exactly once in its file: the list must follow the code. */
function mutated(text: string, { name, file, passage, replacement }: Fault): string {
  const count = text.split(passage).length - 1
  if (count !== 1)
    throw new Error(`fault "${name}": its passage stands ${count} times in ${file}, expected once`)
  return text.replace(passage, () => replacement)
}

/** Runs `work` with a copy of the engine that has the fault. */
async function withFault<Result>(fault: Fault, work: (code: EngineCode) => Promise<Result>): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'engine-fault-'))
  try {
    cpSync(ENGINE, folder, { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    const file = join(folder, fault.file)
    writeFileSync(file, mutated(readFileSync(file, 'utf8'), fault))
    return await work(await loadEngine(folder))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export interface FaultFinding {
  readonly fault: Fault
  /** The first violation of the first seed that has any; null if none has. */
  readonly violation: string | null
  readonly seed: number
}

/** Events of a run that has to find a fault. */
export const FAULT_EVENTS = 12_000

/** Runs the fault's own seed, or searches for one from 1 to `search`. */
export const findFault = (fault: Fault, search: number | null = null): Promise<FaultFinding> =>
  withFault(fault, async (code) => {
    const seeds = search === null ? [fault.seed] : Array.from({ length: search }, (_, at) => at + 1)
    for (const seed of seeds) {
      const violation = await firstViolation(code, seed)
      if (violation !== null) return { fault, violation, seed }
    }
    return { fault, violation: null, seed: fault.seed }
  })

async function firstViolation(code: EngineCode, seed: number): Promise<string | null> {
  try {
    const { violations } = await runExchange(code, { seed, events: FAULT_EVENTS })
    return violations[0] ?? null
  } catch (error) {
    return `the run failed: ${error instanceof Error ? error.message : error}`
  }
}

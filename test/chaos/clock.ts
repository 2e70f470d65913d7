/** Clocks of processes that a campaign steps while they run: each reads by how much it is ahead from a file of its own. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { PlannedFault } from './plan.ts'

const CLOCK = pathToFileURL(join(import.meta.dirname, 'stepped-clock.ts')).href
const STEP_MS = { least: 500, most: 5_000 }

/** A step ahead or back. */
export const stepOf = ({ choice, size }: PlannedFault): number =>
  (choice % 2 === 0 ? 1 : -1) * Math.round(STEP_MS.least + (size * (STEP_MS.most - STEP_MS.least)) / 1000)

export class Clocks {
  readonly #dir: string

  constructor(dir: string) {
    mkdirSync(dir)
    this.#dir = dir
  }

  /** Variables of a process. Its clock is right. */
  variables(name: string): Readonly<Record<string, string>> {
    this.set(name, 0)
    return { NODE_OPTIONS: `--import=${CLOCK}`, CHAOS_CLOCK: this.#file(name) }
  }

  set(name: string, aheadMs: number): void {
    writeFileSync(this.#file(name), `${aheadMs}`)
  }

  #file(name: string): string {
    return join(this.#dir, name.replaceAll(' ', '-'))
  }
}

/** An injected fault of the code: one passage of one file is replaced. */
import type { ScenarioName } from './engine-code.ts'

export interface Fault {
  readonly name: string
  readonly scenario: ScenarioName
  /** Path from the root of the repository. */
  readonly file: string
  /** Text that the file has exactly once. */
  readonly passage: string
  readonly replacement: string
  /** Seed of a run that finds the fault. */
  readonly seed: number
}

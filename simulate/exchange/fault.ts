/** A fault of the code: the replacement of one passage of one file. */
import type { ScenarioName } from './engine-code.ts'

export interface Fault {
  readonly name: string
  readonly scenario: ScenarioName
  /** From the root of the repository. */
  readonly file: string
  /** Stands in the file exactly once. */
  readonly passage: string
  readonly replacement: string
  /** Seed of a run that finds it. */
  readonly seed: number
}

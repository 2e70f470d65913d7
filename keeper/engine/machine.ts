/**
 * The deterministic state that an engine owns. An owner executes commands, a follower applies their rows. The engine
 * schedules commands and stores rows, and depends on the contents of neither.
 */
import type { Millis } from '../../domain/units.ts'

/** Facts that no row states before the decision. A row contains the inputs that decided it. */
export interface Inputs {
  /** The database's clock, never earlier than a row of the journal. */
  readonly now: Millis
}

export interface Decision<Command, Row, Answer> {
  readonly rows: readonly Row[]
  readonly answer: Answer
  /** Continues work that is too long for one step; its last step's answer is the answer of the whole. Null: the work is done. */
  readonly next: Command | null
}

export interface Machine<Command, Row, Answer> {
  /**
   * Decides the command and applies its rows. Throws only if the code or the state is faulty; `undoTo` then undoes the
   * changes. A refusal is an answer.
   */
  execute(command: Command, inputs: Inputs): Decision<Command, Row, Answer>
  /** Throws if the row contradicts the state; `undoTo` then undoes the changes. */
  apply(row: Row): void
  /** The number of rows ever applied. `undoTo` can return to this position until `forget` passes it. */
  position(): number
  /** Undoes every row after the position, and a row that `apply` has applied in part. */
  undoTo(position: number): void
  /** Rows up to the position are committed and are never undone. */
  forget(position: number): void
  /** 16 bytes in hexadecimal digits, behind the state version: equal states have equal digests, on every machine. A row that is applied twice changes it. */
  digest(): string
  /** The latest time that a row states. */
  time(): Millis
  /** The command that restricts the market of a faulty command to cancels; null if the command concerns no market. */
  restriction(faulty: Command): Command | null
  /** Continuations of long work that a former owner has started, in their order. */
  unfinished(): readonly Command[]
}

/**
 * The deterministic state that an engine owns. An owner executes commands, a follower applies their rows. The engine
 * knows neither commands nor rows: it schedules the first and stores the second.
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
   * Decides the command and applies its rows. Throws only if the code or the state is faulty, and what it changed until
   * then is undone by `undoTo`; a refusal is an answer.
   */
  execute(command: Command, inputs: Inputs): Decision<Command, Row, Answer>
  /** Throws if the row contradicts the state; the changes made until then are undone by `undoTo`. */
  apply(row: Row): void
  /** The number of rows ever applied: a position that `undoTo` can return to until it is forgotten. */
  position(): number
  /** Takes back every row after the position, and a row that `apply` has left half done. */
  undoTo(position: number): void
  /** Rows up to the position are committed and are never undone. */
  forget(position: number): void
  /** 16 bytes in hexadecimal digits: equal states have equal digests, on every machine. A row that is applied twice changes it. */
  digest(): string
  /** The latest time that a row states. */
  time(): Millis
  /** The command that restricts what a faulty command concerns to cancels; null if it concerns no market. */
  restriction(faulty: Command): Command | null
  /** Continuations of long work that a former owner has begun, in their order. */
  unfinished(): readonly Command[]
}

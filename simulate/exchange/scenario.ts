/** Machine of the members of a run, and the clients that send them commands. */
import type { Machine } from '../../keeper/engine/machine.ts'
import type { Group } from '../../keeper/engine/ports.ts'
import type { Random } from '../random.ts'
import type { Attempt, Send } from './attempts.ts'
import type { Scheduler } from './scheduler.ts'

export interface Clients<Command, Answer> {
  /** One per command that was sent. */
  readonly attempts: readonly Attempt<Command, Answer>[]
  /** No new commands; those under way are repeated until they are answered. */
  isQuiet: boolean
  start(meanPauseMs: number): void
  /** Sends one command, as an operator who looks whether the engine works. */
  probe(): { isDone(): boolean }
}

/** Records of a run, on which its laws are checked. */
export interface Observed<Command, Row, Answer> {
  readonly groups: readonly Group<Row>[]
  readonly attempts: readonly Attempt<Command, Answer>[]
  /** Why members have ended that must not end for this reason. */
  readonly faults: readonly string[]
  /** Commands in the order of their arrival at an owner. */
  readonly arrivals: readonly Command[]
  /** Commands that an owner was given and, though it was not killed, has not answered. */
  readonly neverAnswered: readonly Command[]
}

export interface Scenario<Command, Row, Answer> {
  newMachine(): Machine<Command, Row, Answer>
  /** Whether the database rejects the row. */
  isPoison(row: Row): boolean
  accountOf(command: Command): number | null
  clients(scheduler: Scheduler, random: Random, send: Send<Command, Answer>): Clients<Command, Answer>
  /** One line per violated law. */
  check(observed: Observed<Command, Row, Answer>): string[]
}

/** `decide` computes the rows that a command writes and its answer. It leaves the state unchanged; `execute` leaves it with the rows. */
import type { AppliedRows } from './applied-rows.ts'
import type { Entry } from './apply.ts'
import { endBrackets } from './decide/brackets.ts'
import { Draft } from './draft.ts'
import type { Inputs } from './inputs.ts'
import type { ExchangeState } from './state.ts'

/** Rows and answer of a command. */
export interface Decision<Answer, Command> {
  readonly entries: readonly Entry[]
  readonly answer: Answer
  /** Command that continues work too long for one step; null: the work is done. */
  readonly next: Command | null
}

/** Decides one kind of command: adds rows to the draft and returns the answer. A refusal is an answer. */
export type Decider<Command, Answer, Next = never> = (
  draft: Draft,
  inputs: Inputs,
  command: Command,
) => Answer | Continued<Answer, Next>

/** Answer of a step, with the command that continues the work. */
export class Continued<Answer, Next> {
  readonly answer: Answer
  readonly next: Next

  constructor(answer: Answer, next: Next) {
    this.answer = answer
    this.next = next
  }
}

interface Step<Command, Answer, Next> {
  readonly decider: Decider<Command, Answer, Next>
  readonly command: Command
}

/** Runs a decider on the state and restores the state afterwards. */
export function decideOn<Command, Answer, Next>(
  state: ExchangeState,
  inputs: Inputs,
  step: Step<Command, Answer, Next>,
): Decision<Answer, Next> {
  const draft = new Draft(state)
  try {
    return { ...run(draft, inputs, step), entries: draft.entries }
  } finally {
    draft.close()
  }
}

/**
 * Runs a decider and leaves the state with its rows, without applying again what the decision has applied. If it
 * throws, the state is as before.
 */
export function executeOn<Command, Answer, Next>(
  applied: AppliedRows,
  inputs: Inputs,
  step: Step<Command, Answer, Next>,
): Decision<Answer, Next> {
  const draft = new Draft(applied.state)
  try {
    const result = run(draft, inputs, step)
    const { entries, marks } = draft.keep()
    applied.adopt(entries, marks)
    return { ...result, entries }
  } catch (error) {
    draft.close()
    throw error
  }
}

function run<Command, Answer, Next>(
  draft: Draft,
  inputs: Inputs,
  { decider, command }: Step<Command, Answer, Next>,
): Omit<Decision<Answer, Next>, 'entries'> {
  const result = decider(draft, inputs, command)
  if (draft.hasRows) endBrackets(draft, inputs.now)
  return result instanceof Continued
    ? { answer: result.answer, next: result.next }
    : { answer: result as Answer, next: null }
}

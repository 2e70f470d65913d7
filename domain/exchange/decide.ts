/** `decide` computes the rows that a command writes and its answer. It leaves the state unchanged. */
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

/** Runs a decider on the state and restores the state afterwards. */
export function decideOn<Command, Answer, Next>(
  state: ExchangeState,
  inputs: Inputs,
  { decider, command }: { readonly decider: Decider<Command, Answer, Next>; readonly command: Command },
): Decision<Answer, Next> {
  const draft = new Draft(state)
  try {
    const result = decider(draft, inputs, command)
    if (draft.hasRows) endBrackets(draft, inputs.now)
    const isContinued = result instanceof Continued
    return {
      entries: draft.close(),
      answer: isContinued ? result.answer : (result as Answer),
      next: isContinued ? result.next : null,
    }
  } catch (error) {
    draft.close()
    throw error
  }
}

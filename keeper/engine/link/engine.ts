/** The engine as its clients see it: each kind of command has its type of answer. */
import type { AnswerOf, CommandKind, CommandOf } from '../commands.ts'
import type { Inform } from '../facts.ts'
import type { ClientReply, EngineClient } from './client.ts'
import { decode, encode } from './codec.ts'

export type { AnswerOf, CommandKind, CommandOf } from '../commands.ts'

export type EngineReply<Answer> =
  | { readonly answer: Answer }
  | Extract<ClientReply, { readonly none: unknown }>

export interface Engine {
  /**
   * Never rejects: a reply without an answer says why. `arrivedAt`: by `performance.now()`, not later than the command's arrival at this process.
   * `traceId`: names the request in log lines.
   */
  submit<Kind extends CommandKind>(
    command: CommandOf<Kind>,
    budgetMs: number,
    arrivedAt?: number,
    traceId?: string,
  ): Promise<EngineReply<AnswerOf<Kind>>>
  /** Sends every member a fact that no row states. A member that was not reached learns it when the sender repeats it. */
  inform(fact: Inform): Promise<void>
}

const INFORM_BUDGET_MS = 1_000

export const createEngine = (client: Pick<EngineClient, 'submit' | 'inform'>): Engine => ({
  async submit<Kind extends CommandKind>(
    command: CommandOf<Kind>,
    budgetMs: number,
    arrivedAt?: number,
    traceId?: string,
  ) {
    const reply = await client.submit(encode(command), budgetMs, arrivedAt, traceId)
    return 'none' in reply ? reply : { answer: decode(reply.answer) as AnswerOf<Kind> }
  },
  async inform(fact) {
    await client.inform(encode(fact), INFORM_BUDGET_MS)
  },
})

/** A command has no answer. `outcome` says whether it may have been executed. */
export class EngineError extends Error {
  override readonly name = 'EngineError'
  readonly outcome: 'not_executed' | 'unknown'

  constructor(kind: CommandKind, reply: { readonly none: string; readonly detail?: string }) {
    super(`${kind}: ${reply.none}${reply.detail === undefined ? '' : ` (${reply.detail})`}`)
    this.outcome = reply.none === 'unknown' ? 'unknown' : 'not_executed'
  }
}

/** For callers that try again later: the answer, or an EngineError. */
export async function ask<Kind extends CommandKind>(
  engine: Engine,
  command: CommandOf<Kind>,
  budgetMs: number,
): Promise<AnswerOf<Kind>> {
  const reply = await engine.submit<Kind>(command, budgetMs)
  if ('none' in reply) throw new EngineError(command.kind as CommandKind, reply)
  return reply.answer
}

/** Commands that the engine has not answered, as errors of the contract with traders. */
import type { AnswerOf, CommandKind, CommandOf, Engine, EngineReply } from '../keeper/engine/link/engine.ts'
import { ApiError } from './errors.ts'

export type Unanswered = Extract<EngineReply<never>, { readonly none: unknown }>

const RETRY = '1'

/**
 * `unknown`: the command may have been executed. Every other reply states that it was not; an earlier attempt at it may have been all the same, which
 * `earlier-attempts.ts` looks up.
 */
export function unansweredError({ none }: Unanswered): ApiError {
  switch (none) {
    case 'unknown':
      return new ApiError('OUTCOME_UNKNOWN', {}, RETRY)
    case 'overloaded':
    case 'not_executed':
      return new ApiError('OVERLOADED', {}, RETRY)
    // Without a change of this process or of the engine a repetition has the same reply.
    case 'faulty':
    case 'forbidden':
    case 'invalid':
      return new ApiError('INTERNAL', {}, undefined, 'not_placed')
  }
}

/** Replies that only a fault of the exchange explains. */
export const isFault = ({ none }: Unanswered): boolean =>
  none === 'faulty' || none === 'forbidden' || none === 'invalid'

export interface EngineCallLogger {
  error(facts: object, message: string): void
}

/** Commands to the engine, whose errors are those of the contract with traders. */
export interface EngineCalls {
  /** The answer. Throws the ApiError of a reply without one. */
  ask<Kind extends CommandKind>(command: CommandOf<Kind>, budgetMs?: number): Promise<AnswerOf<Kind>>
  /** The same for a command that changes nothing when it is repeated: an unknown outcome is an error that the caller may repeat. */
  repeat<Kind extends CommandKind>(command: CommandOf<Kind>): Promise<AnswerOf<Kind>>
}

export function createEngineCalls(
  engine: Engine,
  logger: EngineCallLogger,
  { commandTimeoutMs }: { readonly commandTimeoutMs: number },
): EngineCalls {
  const ask: EngineCalls['ask'] = async (command, budgetMs = commandTimeoutMs) => {
    const reply = await engine.submit(command, budgetMs)
    if (!('none' in reply)) return reply.answer
    if (isFault(reply))
      logger.error({ ...reply, command: command.kind }, 'the engine has not executed a command')
    throw unansweredError(reply)
  }
  return {
    ask,
    async repeat(command) {
      try {
        return await ask(command)
      } catch (error) {
        const isUnknown = error instanceof ApiError && error.code === 'OUTCOME_UNKNOWN'
        throw isUnknown ? new ApiError('OVERLOADED', {}, RETRY) : error
      }
    },
  }
}

/** Commands that the engine has not answered, as errors of the contract with traders. */
import type { AnswerOf, CommandKind, CommandOf, Engine, EngineReply } from '../keeper/engine/link/engine.ts'
import type { SpanError, Spans } from '../service/spans.ts'
import type { ArrivalTimes } from './arrival-times.ts'
import { ApiError } from './errors.ts'
import { startCall } from './request-spans.ts'

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
  /** A placement or a cancel: an error states the outcome of this attempt. */
  decide<Kind extends 'orders' | 'cancel_all'>(
    command: CommandOf<Kind>,
    budgetMs: number,
  ): Promise<AnswerOf<Kind>>
  /** Another command. Its earlier attempts are not looked up, so without an answer its outcome is unknown, as without the database. */
  ask<Kind extends CommandKind>(command: CommandOf<Kind>): Promise<AnswerOf<Kind>>
  /**
   * True once all earlier commands have replies and the tables show their changes; false after a time limit. An api's
   * unsent commands with a key in `fences` are then never executed.
   */
  barrier(fences: readonly string[]): Promise<boolean>
}

const callErrorOf = (reply: EngineReply<unknown>): SpanError | undefined =>
  'none' in reply ? { code: reply.none, isFault: isFault(reply) } : undefined

/** Part of the time of a command for which a barrier is waited for. */
const BARRIER_PART = 0.4

export function createEngineCalls(
  engine: Engine,
  logger: EngineCallLogger,
  { commandTimeoutMs }: { readonly commandTimeoutMs: number },
  requests: Pick<ArrivalTimes, 'current' | 'traceId' | 'span'>,
  spans: Spans | null,
): EngineCalls {
  const submit = async <Kind extends CommandKind>(
    command: CommandOf<Kind>,
    budgetMs: number,
    arrivedAt?: number,
  ): Promise<EngineReply<AnswerOf<Kind>>> => {
    const span = spans && startCall(spans, requests, command.kind)
    const reply = await engine.submit<Kind>(command, budgetMs, arrivedAt, span?.traceId ?? requests.traceId)
    span?.end(callErrorOf(reply))
    if ('none' in reply && isFault(reply))
      logger.error({ ...reply, command: command.kind }, 'the engine has not executed a command')
    return reply
  }
  return {
    async decide(command, budgetMs) {
      const reply = await submit(command, budgetMs, requests.current)
      if ('none' in reply) throw unansweredError(reply)
      return reply.answer
    },
    async ask(command) {
      const reply = await submit(command, commandTimeoutMs)
      if (!('none' in reply)) return reply.answer
      throw isFault(reply) ? new ApiError('INTERNAL') : new ApiError('DATABASE_UNAVAILABLE', {}, RETRY)
    },
    async barrier(fences) {
      const reply = await submit<'barrier'>({ kind: 'barrier', fences }, BARRIER_PART * commandTimeoutMs)
      return 'answer' in reply
    },
  }
}

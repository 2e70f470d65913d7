/**
 * Outcome of a command that is refused before the engine decides it: an earlier attempt, perhaps of another process,
 * may have been executed or may still wait.
 */

import type { PlacementOutcome } from '../catalogue-entry.ts'
import { ApiError, type ErrorContext } from '../errors.ts'
import { catalogued } from '../http/errors.ts'
import type { Settled } from './settled-commands.ts'

/** Result of looking up an earlier attempt. */
export interface Finding {
  readonly outcome: PlacementOutcome
  readonly facts?: ErrorContext
}

export interface CommandIdentity {
  /** The same for every attempt at the command. */
  readonly key: string
  /** Reads the stored effect of earlier attempts. If earlier commands were settled before, a command without a stored effect was not executed. */
  find(): Promise<Finding>
}

export interface CommandLogger {
  debug(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}

export interface EarlierAttempts {
  /** Runs checks that precede the command. Their errors get the outcome of the command. */
  checking<Value>(identity: CommandIdentity, work: () => Promise<Value>): Promise<Value>
  /** Executes the command. An error that the engine has not decided gets the outcome of the command. */
  executing<Value>(identity: CommandIdentity, work: () => Promise<Value>): Promise<Value>
}

/** Errors of commands that were not decided. */
const UNDECIDED: ReadonlySet<string> = new Set(['OVERLOADED', 'SHUTTING_DOWN', 'INTERNAL'])

/**
 * Time for which a command with an unknown outcome may still be executed. It exceeds the engine's wait for a command, and for the outcome of
 * an append while the database responds.
 */
const UNRESOLVED_MS = 60_000

export function createEarlierAttempts(
  logger: Pick<CommandLogger, 'warn'>,
  settled: Settled,
): EarlierAttempts {
  /** Number of attempts that execute, by key. */
  const running = new Map<string, number>()
  /** Until when attempts with an unknown outcome may be executed, by key; the oldest first. */
  const unresolved = new Map<string, number>()

  function noteUnresolved(key: string): void {
    const now = performance.now()
    for (const [old, until] of unresolved) {
      if (until > now) break
      unresolved.delete(old)
    }
    unresolved.delete(key)
    unresolved.set(key, now + UNRESOLVED_MS)
  }

  const isUnresolved = (key: string): boolean => (unresolved.get(key) ?? 0) > performance.now()

  /** `others`: further attempts in this process, without the refused attempt. */
  async function judged(error: unknown, { key, find }: CommandIdentity, others: number): Promise<unknown> {
    if (!(error instanceof ApiError) || error.outcome !== 'not_placed') return error
    if (others > 0) return error.with('unknown')
    try {
      const isComplete = await settled([key])
      const { outcome, facts } = await find()
      if (outcome !== 'not_placed') return error.with(outcome, facts)
      return isUnresolved(key) || !isComplete ? error.with('unknown') : error
    } catch (err) {
      logger.warn(
        { err, command: key },
        'failed to read earlier attempts; the outcome of a refused command is unknown',
      )
      return error.with('unknown')
    }
  }

  return {
    async checking(identity, work) {
      try {
        return await work()
      } catch (error) {
        throw await judged(error, identity, running.get(identity.key) ?? 0)
      }
    },
    async executing(identity, work) {
      const { key } = identity
      running.set(key, (running.get(key) ?? 0) + 1)
      try {
        return await work()
      } catch (error) {
        if (error instanceof ApiError && error.code === 'OUTCOME_UNKNOWN') noteUnresolved(key)
        const isUndecided = error instanceof ApiError && UNDECIDED.has(error.code)
        throw isUndecided ? await judged(error, identity, (running.get(key) as number) - 1) : error
      } finally {
        const left = (running.get(key) as number) - 1
        if (left === 0) running.delete(key)
        else running.set(key, left)
      }
    },
  }
}

/** Work after the execution of a command: whatever fails, the command took effect. */
export async function afterExecution<Value>(
  logger: Pick<CommandLogger, 'error'>,
  facts: ErrorContext,
  work: () => Value | Promise<Value>,
): Promise<Value> {
  try {
    return await work()
  } catch (error) {
    throw catalogued(error, logger).with('placed', facts)
  }
}

/** Whether the tables of readers contain what every command has changed that the engine received before, from any api. */
import { setTimeout as sleep } from 'node:timers/promises'
import { MAX_KEY_LENGTH } from '../../domain/exchange/decide/orders/command-keys.ts'
import type { EngineCalls } from '../engine-reply.ts'
import { ApiError } from '../errors.ts'

/**
 * True once all received commands are decided, and unsent commands with a key in `fences` can no longer be executed.
 * False if this is not known within a time limit.
 */
export type Settled = (fences: readonly string[]) => Promise<boolean>

interface Joining {
  readonly fences: Set<string>
  readonly isSettled: Promise<boolean>
}

/** Maximum fences that callers join in one barrier; more fences are sent in a separate barrier. */
const JOINED_FENCES = 1_000

/** Calls within `joinMs` send one barrier. */
export function createSettled({ barrier }: Pick<EngineCalls, 'barrier'>, joinMs: number): Settled {
  let joining: Joining | null = null

  function join(): Joining {
    const fences = new Set<string>()
    const isSettled = sleep(joinMs).then(() => {
      if (joining === own) joining = null
      return barrier([...fences])
    })
    const own = { fences, isSettled }
    return own
  }

  return (fences) => {
    if (joining === null || joining.fences.size >= JOINED_FENCES) joining = join()
    // No command of the engine has a longer key.
    for (const key of fences) if (key.length <= MAX_KEY_LENGTH) joining.fences.add(key)
    return joining.isSettled
  }
}

/** Before a read whose result is an answer: an order that is not found may be stored a moment later. */
export async function requireSettled(settled: Settled, fences: readonly string[] = []): Promise<void> {
  if (!(await settled(fences))) throw new ApiError('OUTCOME_UNKNOWN', {}, '1')
}

/** Whether the tables of readers contain what every command has changed that the engine received before, from any api. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { EngineCalls } from '../engine-reply.ts'
import { ApiError } from '../errors.ts'

/** False if it is not known within a while: a command that was received may then still be executed. */
export type Settled = () => Promise<boolean>

/** Calls within `joinMs` send one barrier. */
export function createSettled({ barrier }: Pick<EngineCalls, 'barrier'>, joinMs: number): Settled {
  let joining: Promise<boolean> | null = null
  async function join(): Promise<boolean> {
    await sleep(joinMs)
    joining = null
    return barrier()
  }
  return () => {
    joining ??= join()
    return joining
  }
}

/** Before a read whose result is an answer: an order that is not found may be stored a moment later. */
export async function requireSettled(settled: Settled): Promise<void> {
  if (!(await settled())) throw new ApiError('OUTCOME_UNKNOWN', {}, '1')
}

/**
 * Commands that share their markets' locks, in the order of their arrival: while one group commits, the next collects. Under load
 * groups grow by themselves, without load a command waits for nothing. Cancels go first, but never before a command that the same
 * account has sent earlier.
 */
import { ApiError } from '../errors.ts'
import type { Command } from './command.ts'

export interface CommandQueueOptions {
  /** Answers every command of the group; never rejects. */
  readonly run: (group: readonly Command[]) => Promise<void>
  /** Items of one transaction. A command with more has one of its own. */
  readonly maxGroup: number
  /** Items that may wait. Cancels may wait beyond it, up to twice as many. */
  readonly maxQueue: number
}

export interface CommandQueue {
  /** Throws OVERLOADED when too much waits. */
  push(command: Command): void
  /** Resolves when nothing waits and nothing runs. */
  drained(): Promise<void>
  /** Items. */
  readonly waiting: number
}

const weightOf = ({ items }: Command): number => items.length

/** Cancels before placements, each account's commands in the order they came in. */
function urgentFirst(queue: Command[]): Command[] {
  if (queue.every(({ kind }) => kind === queue[0]?.kind)) return queue
  const urgent: Command[] = []
  const others: Command[] = []
  const behind = new Set<number>()
  for (const command of queue) {
    if (command.kind === 'cancel' && !behind.has(command.userId)) urgent.push(command)
    else {
      others.push(command)
      behind.add(command.userId)
    }
  }
  return [...urgent, ...others]
}

export function createCommandQueue({ run, maxGroup, maxQueue }: CommandQueueOptions): CommandQueue {
  let queue: Command[] = []
  let waiting = 0
  let running: Promise<void> | null = null

  const take = (): readonly Command[] => {
    const ordered = urgentFirst(queue)
    let weight = 0
    let end = 0
    for (const command of ordered) {
      weight += weightOf(command)
      if (end > 0 && weight > maxGroup) break
      end++
    }
    const group = ordered.slice(0, end)
    queue = ordered.slice(end)
    waiting -= group.reduce((sum, command) => sum + weightOf(command), 0)
    return group
  }

  const work = async (): Promise<void> => {
    // What arrives within one turn of the event loop shares its transaction.
    await new Promise(setImmediate)
    while (queue.length > 0) await run(take())
    running = null
  }

  return {
    push(command) {
      const most = command.kind === 'cancel' ? 2 * maxQueue : maxQueue
      if (waiting >= most) throw new ApiError('OVERLOADED', {}, '1')
      queue.push(command)
      waiting += weightOf(command)
      running ??= work()
    },
    drained: async () => {
      while (running !== null) await running
    },
    get waiting() {
      return waiting
    },
  }
}

/**
 * A queue of commands that need the same locks. While one group commits, arriving commands collect for the next group: groups grow
 * under load, and without load a command starts at once. Cancels come first, but never before an earlier command of the same account.
 *
 * A queue rests after a group for as long as the group took, unless the next one is full: a group of one command costs almost as much as
 * one of ten, so groups without a rest would use up the processors before they grow, and every command would wait longer.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError } from '../errors.ts'
import type { Command } from './command.ts'

export interface CommandQueueOptions {
  /** Resolves or rejects every command of the group; the returned promise never rejects. */
  readonly run: (group: readonly Command[]) => Promise<void>
  /** Maximum items per transaction. A command with more items has a transaction of its own. */
  readonly maxGroup: number
  /** Maximum waiting items for placements; cancels may wait up to twice as many. */
  readonly maxQueue: number
  /** Waits between two groups. A test sets its own. */
  readonly rest?: (ms: number) => Promise<unknown>
}

export interface CommandQueue {
  /** Throws OVERLOADED if the queue is full. */
  push(command: Command): void
  /** Resolves when the queue is empty and no group runs. */
  drained(): Promise<void>
  /** Number of waiting items. */
  readonly waiting: number
}

/** A group that was slow for another reason, such as a lock, delays the next one by no more than this. */
const MAX_REST_MS = 50

const weightOf = ({ items }: Command): number => items.length

/** Cancels before placements; commands of one account stay in order of arrival. */
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

export function createCommandQueue(options: CommandQueueOptions): CommandQueue {
  const { run, maxGroup, maxQueue, rest = sleep } = options
  let queue: Command[] = []
  let waiting = 0
  let running: Promise<void> | null = null

  const takeGroup = (): readonly Command[] => {
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
    // Commands that arrive within one turn of the event loop share a transaction.
    await new Promise(setImmediate)
    while (queue.length > 0) {
      const start = performance.now()
      await run(takeGroup())
      const isFull = waiting >= maxGroup
      if (!isFull) await rest(Math.min(MAX_REST_MS, performance.now() - start))
    }
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

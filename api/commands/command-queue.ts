/**
 * A queue of commands that need the same locks. While one group commits, arriving commands collect for the next group: groups grow
 * under load, and without load a command starts at once. Cancels come first, but never before an earlier command of the same account.
 * If not all commands fit into a group, accounts take turns, so that the commands of one account do not delay those of the others.
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

/** A cancel of all orders may end hundreds of orders. */
const CANCEL_ALL_COST = 32

/** Share of a command in the size of a group. */
const costOf = ({ items }: Command): number =>
  items.reduce((sum, { kind }) => sum + (kind === 'cancel_all' ? CANCEL_ALL_COST : 1), 0)

/** An account may use this share of the queue, so that the queue is not full for other accounts. */
const SHARE = 0.25

/** Cancels, and what comes after them; commands of one account stay in order of arrival. */
function urgentFirst(queue: Command[]): readonly [urgent: Command[], others: Command[]] {
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
  return [urgent, others]
}

/** In turns of the accounts: the second command of an account comes after the first of every account, within its urgency. */
function inTurns(commands: readonly Command[]): Command[] {
  const turns: Command[][] = []
  const taken = new Map<number, number>()
  for (const command of commands) {
    const turn = taken.get(command.userId) ?? 0
    taken.set(command.userId, turn + 1)
    const own = turns[turn]
    if (own === undefined) turns[turn] = [command]
    else own.push(command)
  }
  return turns.flat()
}

/** The commands of the next group, in their order of arrival, and the rest. The first one always fits. */
function split(queue: Command[], maxGroup: number): { readonly group: Command[]; readonly rest: Command[] } {
  const [urgent, others] = urgentFirst(queue)
  const group = new Set<Command>()
  let cost = 0
  for (const command of [...inTurns(urgent), ...inTurns(others)]) {
    cost += costOf(command)
    if (group.size > 0 && cost > maxGroup) break
    group.add(command)
  }
  const ordered = [...urgent, ...others]
  return {
    group: ordered.filter((command) => group.has(command)),
    rest: queue.filter((command) => !group.has(command)),
  }
}

export function createCommandQueue(options: CommandQueueOptions): CommandQueue {
  const { run, maxGroup, maxQueue, rest = sleep } = options
  let queue: Command[] = []
  let waiting = 0
  let running: Promise<void> | null = null
  /** Waiting items by account. */
  const waitingOf = new Map<number, number>()

  const count = (command: Command, sign: 1 | -1): void => {
    const { userId } = command
    const own = (waitingOf.get(userId) ?? 0) + sign * weightOf(command)
    waiting += sign * weightOf(command)
    if (own === 0) waitingOf.delete(userId)
    else waitingOf.set(userId, own)
  }

  const takeGroup = (): readonly Command[] => {
    const { group, rest } = split(queue, maxGroup)
    queue = rest
    for (const command of group) count(command, -1)
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
      const own = waitingOf.get(command.userId) ?? 0
      if (waiting >= most || own >= Math.ceil(SHARE * most)) throw new ApiError('OVERLOADED', {}, '1')
      queue.push(command)
      count(command, 1)
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

/**
 * One market's commands, in the order of their arrival: while one group commits, the next collects. Under load groups grow by
 * themselves, without load a command waits for nothing.
 */
import { ApiError } from '../errors.ts'

export interface LaneOptions<Command> {
  /** Answers every command of the group; never rejects. */
  readonly run: (group: readonly Command[]) => Promise<void>
  /** Commands that share a key touch the same order: they never meet in one group. */
  readonly keysOf: (command: Command) => readonly string[]
  readonly maxGroup: number
  readonly maxQueue: number
}

export interface Lane<Command> {
  /** Throws OVERLOADED when too many wait. */
  push(command: Command): void
  /** Resolves when nothing waits and nothing runs. */
  drained(): Promise<void>
  readonly waiting: number
}

export function createLane<Command>({
  run,
  keysOf,
  maxGroup,
  maxQueue,
}: LaneOptions<Command>): Lane<Command> {
  let queue: Command[] = []
  let running: Promise<void> | null = null

  const take = (): Command[] => {
    const keys = new Set<string>()
    let end = 0
    for (const command of queue) {
      const own = keysOf(command)
      if (end === maxGroup || own.some((key) => keys.has(key))) break
      for (const key of own) keys.add(key)
      end++
    }
    const group = queue.slice(0, end)
    queue = queue.slice(end)
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
      if (queue.length >= maxQueue) throw new ApiError('OVERLOADED', {}, '1')
      queue.push(command)
      running ??= work()
    },
    drained: async () => {
      while (running !== null) await running
    },
    get waiting() {
      return queue.length
    },
  }
}

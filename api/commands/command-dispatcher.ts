/** Dispatches each command to a queue: one queue per market, and one for commands over several markets or none. */

import type { Db } from '../../db/client.ts'
import { ApiError } from '../errors.ts'
import type { Metrics } from '../metrics.ts'
import { type Command, isSpanning } from './command.ts'
import { type CommandQueue, createCommandQueue } from './command-queue.ts'
import { createGroupRunner, type GroupOptions, type GroupPorts } from './group.ts'
import { createJournalNotifier } from './journal-notifier.ts'

export type NewCommand<Result> = Omit<Command<Result>, 'arrivedAt' | 'resolve' | 'reject'>

export interface CommandDispatcher {
  /** Whether long commands are executed in bounded steps: the caller need not divide them by market. */
  readonly hasSteps: boolean
  /** Resolves with the command's answer after its transaction has committed. */
  submit<Result>(command: NewCommand<Result>): Promise<Result>
  /** Rejects new commands; resolves when all accepted commands are answered and their notifications are sent. */
  stop(): Promise<void>
}

export interface CommandDispatcherPorts extends Omit<GroupPorts, 'notifier' | 'observe'> {
  readonly db: Db
  readonly metrics: Pick<Metrics, 'group' | 'gauge'>
}

export interface CommandDispatcherOptions extends GroupOptions {
  readonly maxGroup: number
  readonly maxQueue: number
}

const SPANNING = 'spanning'

export function createCommandDispatcher(
  ports: CommandDispatcherPorts,
  options: CommandDispatcherOptions,
): CommandDispatcher {
  const queues = new Map<number | typeof SPANNING, CommandQueue>()
  const notifier = createJournalNotifier(ports.db)
  const run = createGroupRunner({ ...ports, notifier, observe: ports.metrics.group }, options)
  let isStopping = false

  const queueOf = (command: NewCommand<unknown>): CommandQueue => {
    const key = isSpanning(command) ? SPANNING : (command.markets[0]?.marketId as number)
    const known = queues.get(key)
    if (known !== undefined) return known
    const queue = createCommandQueue({ run, maxGroup: options.maxGroup, maxQueue: options.maxQueue })
    queues.set(key, queue)
    return queue
  }
  ports.metrics.gauge('api_commands_waiting', 'Placements and cancels waiting for a transaction', () =>
    [...queues.values()].reduce((sum, queue) => sum + queue.waiting, 0),
  )

  return {
    hasSteps: false,
    submit: <Result>(command: NewCommand<Result>): Promise<Result> =>
      new Promise((resolve, reject) => {
        if (isStopping) throw new ApiError('SHUTTING_DOWN', {}, '1')
        const waiting: Command<Result> = { ...command, arrivedAt: ports.clock.now(), resolve, reject }
        queueOf(command).push(waiting as Command)
      }),
    async stop() {
      isStopping = true
      await Promise.all([...queues.values()].map((queue) => queue.drained()))
      await notifier.drained()
    },
  }
}

/** Where commands wait: a lane per market, and one for those over several markets or none. */

import type { Db } from '../../db/client.ts'
import { ApiError } from '../errors.ts'
import type { Metrics } from '../metrics.ts'
import type { Command } from './command.ts'
import { type CommandQueue, createCommandQueue } from './command-queue.ts'
import { createGroupRunner, type GroupOptions, type GroupPorts } from './group.ts'
import { createAnnouncer } from './journal-notifier.ts'

export type NewCommand<Result> = Omit<Command<Result>, 'arrivedAt' | 'resolve' | 'reject'>

export interface CommandQueues {
  /** Waits for the command's transaction and gives its answer. */
  submit<Result>(command: NewCommand<Result>): Promise<Result>
  /** Takes nothing more, and resolves when everything taken is answered and announced. */
  stop(): Promise<void>
}

export interface CommandQueuesPorts extends Omit<GroupPorts, 'announcer' | 'observe'> {
  readonly db: Db
  readonly metrics: Pick<Metrics, 'group' | 'watch'>
}

export interface CommandQueuesOptions extends GroupOptions {
  readonly maxGroup: number
  readonly maxQueue: number
}

const SPANNING = 'spanning'

export function createCommandQueues(ports: CommandQueuesPorts, options: CommandQueuesOptions): CommandQueues {
  const lanes = new Map<number | typeof SPANNING, CommandQueue>()
  const announcer = createAnnouncer(ports.db)
  const run = createGroupRunner({ ...ports, announcer, observe: ports.metrics.group }, options)
  let isStopping = false

  const laneOf = ({ markets }: NewCommand<unknown>): CommandQueue => {
    const key = markets.length === 1 ? (markets[0]?.marketId as number) : SPANNING
    const known = lanes.get(key)
    if (known !== undefined) return known
    const lane = createCommandQueue({ run, maxGroup: options.maxGroup, maxQueue: options.maxQueue })
    lanes.set(key, lane)
    return lane
  }
  ports.metrics.watch('api_commands_waiting', 'Placements and cancels that wait for a transaction', () =>
    [...lanes.values()].reduce((sum, lane) => sum + lane.waiting, 0),
  )

  return {
    submit: <Result>(command: NewCommand<Result>): Promise<Result> =>
      new Promise((resolve, reject) => {
        if (isStopping) throw new ApiError('SHUTTING_DOWN', {}, '1')
        const waiting: Command<Result> = { ...command, arrivedAt: ports.clock.now(), resolve, reject }
        laneOf(command).push(waiting as Command)
      }),
    async stop() {
      isStopping = true
      await Promise.all([...lanes.values()].map((lane) => lane.drained()))
      await announcer.drained()
    },
  }
}

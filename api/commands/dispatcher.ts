/**
 * Sends commands to the engine, which decides an account's commands in the order of sending. Ended orders and requests
 * that the engine no longer has are sent along from the tables.
 */
import type {
  CancelAllCommand,
  Done,
  OrdersAnswer,
  OrdersCommand,
} from '../../domain/exchange/decide/orders/command.ts'
import type { Clock } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { ArrivalTimes } from '../arrival-times.ts'
import type { EngineCalls } from '../engine-reply.ts'
import { ApiError } from '../errors.ts'
import type { Metrics } from '../metrics.ts'
import { type CommandTurn, createAccountOrder } from './account-order.ts'
import {
  type CancelAll,
  type Command,
  type CommandReport,
  type Executed,
  hashesOf,
  type StoredRequest,
} from './command.ts'
import { afterExecution, type CommandLogger } from './earlier-attempts.ts'
import { type SentOrders, toCancelAll, toOrders } from './engine-command.ts'
import { commandRefusalError } from './engine-refusals.ts'
import { reportOf, storedHashes } from './engine-report.ts'
import { createReleasedThings, type ReleasedThingsPorts } from './released-things.ts'
import type { ShardEpochs } from './shard-epochs.ts'

export interface CommandDispatcher {
  /** Resolves after the engine has stored the command's rows. */
  submit(command: Command): Promise<Executed>
  cancelAll(command: CancelAll): Promise<CommandReport>
  /** The report that the command would have now. Nothing is stored. */
  dryRun(command: Command): Promise<CommandReport>
  /** Rejects new commands; resolves when all accepted commands are answered. */
  stop(): Promise<void>
}

export interface DispatcherPorts extends ReleasedThingsPorts {
  readonly engine: EngineCalls
  readonly epochs: ShardEpochs
  readonly clock: Clock
  readonly killPoint: KillPointHook<'after-placement-commit' | 'after-request-commit'>
  readonly logger: CommandLogger
  readonly requests: Pick<ArrivalTimes, 'traceId'>
  readonly metrics: Pick<Metrics, 'gauge'>
}

export interface DispatcherOptions {
  readonly commandTimeoutMs: number
  /** Maximum unanswered commands; further commands are refused at once. */
  readonly maxQueue: number
}

/** Commands with the engine, bounded in number and in time. */
export function createDispatcher(
  ports: DispatcherPorts,
  { commandTimeoutMs, maxQueue }: DispatcherOptions,
): CommandDispatcher {
  const { clock, epochs } = ports
  const accounts = createAccountOrder()
  const execution = createExecution(ports)
  const open = new Set<Promise<unknown>>()
  let isStopping = false
  ports.metrics.gauge('api_commands_waiting', () => open.size)

  async function bounded<Result>(work: () => Promise<Result>): Promise<Result> {
    // Refused at once, without a look at earlier attempts: the engine may be what all others wait for.
    if (isStopping) throw new ApiError('SHUTTING_DOWN', {}, '1').beforeReading()
    if (open.size >= maxQueue) throw new ApiError('OVERLOADED', {}, '1').beforeReading()
    const result = work()
    open.add(result)
    try {
      return await result
    } finally {
      open.delete(result)
    }
  }

  async function inTurn<Result>(
    turn: CommandTurn,
    work: (sending: Sending) => Promise<Result>,
  ): Promise<Result> {
    try {
      const sending = { turn, deadline: clock.now() + commandTimeoutMs }
      await turn.begins
      await epochs.refresh()
      return await work(sending)
    } finally {
      turn.ended()
    }
  }

  return {
    submit: (command) =>
      bounded(() =>
        inTurn(accounts.begin(command.userId, command.kind === 'place'), (sending) =>
          execution.submit(command, sending),
        ),
      ),
    cancelAll: (command) =>
      bounded(() =>
        inTurn(accounts.begin(command.userId, false), (sending) => execution.cancelAll(command, sending)),
      ),
    // Takes no place of a command, and need not be awaited at the stop.
    async dryRun(command) {
      await epochs.refresh()
      return execution.dryRun(command)
    },
    async stop() {
      isStopping = true
      await Promise.allSettled(open)
    },
  }
}

interface Sending {
  readonly turn: CommandTurn
  readonly deadline: number
}

interface Decided {
  readonly answer: Exclude<OrdersAnswer, { readonly kind: 'look_again' }>
  readonly refused: SentOrders['refused']
}

interface Sender {
  send(sent: OrdersCommand): Promise<OrdersAnswer>
  beforeLookUp(): Promise<void>
}

function createExecution(ports: DispatcherPorts) {
  const { engine, clock, killPoint, logger, epochs, findOrders, requests } = ports
  const released = createReleasedThings(ports)

  function send(sent: OrdersCommand | CancelAllCommand, { turn, deadline }: Sending): Promise<OrdersAnswer> {
    const budgetMs = deadline - clock.now()
    if (budgetMs <= 0) throw new ApiError('OVERLOADED', {}, '1')
    const answer = engine.decide<'orders' | 'cancel_all'>(sent, budgetMs)
    turn.sent()
    return answer
  }

  /** Sends the command until the engine has decided it. */
  async function decided(
    command: Command,
    sender: Sender,
  ): Promise<Decided | { readonly stored: StoredRequest }> {
    let found: SentOrders | { readonly stored: StoredRequest } = toOrders(command)
    if (released.concerns(found.command)) found = await released.lookUp(found, command, 'new')
    for (;;) {
      if ('stored' in found) return found
      const answer = await sender.send(found.command)
      if (answer.kind !== 'look_again') return { answer, refused: found.refused }
      released.note(answer)
      await sender.beforeLookUp()
      found = await released.lookUp(found, command, 'all')
    }
  }

  async function reportFor(
    done: Done,
    { maker }: Pick<Command, 'maker'>,
    refused: SentOrders['refused'],
  ): Promise<CommandReport> {
    const stored = await findOrders(storedHashes(done))
    return reportOf(done, { refused, maker, stored, bookmark: epochs.bookmark, now: clock.now() })
  }

  return {
    async submit(command: Command, sending: Sending): Promise<Executed> {
      const found = await decided(command, {
        send: (sent) => send(sent, sending),
        // An earlier placement may have to be sent again, too: a cancel or a replacement waits for its answer instead of missing its order.
        beforeLookUp: async () => {
          if (command.kind === 'cancel' || command.items.some(({ kind }) => kind === 'replace'))
            await sending.turn.afterPlacements()
        },
      })
      if ('stored' in found) return found
      const { answer, refused } = found
      if (answer.kind === 'repeated') return { stored: answer.request }
      const done = doneOf(answer, refused)
      logger.debug(
        { trace_id: requests.traceId, order_hashes: hashesOf(command) },
        'command stored by the engine',
      )
      killPoint('after-placement-commit')
      if (command.request !== null) killPoint('after-request-commit')
      return { report: await afterExecution(logger, {}, () => reportFor(done, command, refused)) }
    },

    async cancelAll(command: CancelAll, sending: Sending): Promise<CommandReport> {
      // An earlier placement may have to be sent again: the cancel must not pass it.
      await sending.turn.afterPlacements()
      const done = doneOf(await send(toCancelAll(command), sending), [])
      logger.debug(
        { trace_id: requests.traceId, order_hashes: storedHashes(done) },
        'command stored by the engine',
      )
      killPoint('after-placement-commit')
      return afterExecution(logger, {}, () => reportFor(done, command, []))
    },

    async dryRun(command: Command): Promise<CommandReport> {
      const found = await decided(command, {
        send: (sent) => engine.ask({ ...sent, kind: 'dry_run' }),
        beforeLookUp: async () => {},
      })
      if ('stored' in found) throw new Error('a dry run has no client_request_id')
      return reportFor(doneOf(found.answer, found.refused), command, found.refused)
    },
  }
}

/** Throws the error of a command that the engine has refused. */
function doneOf(answer: OrdersAnswer, refused: SentOrders['refused']): Done {
  if (answer.kind === 'done') return answer
  if (answer.kind === 'refused') throw commandRefusalError(answer.refusal, refused)
  throw new Error(
    `the engine has answered a command that has no request and depends on nothing: ${answer.kind}`,
  )
}

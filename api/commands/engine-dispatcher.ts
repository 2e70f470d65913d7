/**
 * Dispatches commands to the engine, which decides the commands of an account in the order in which they were sent. A command that may depend on ended
 * orders or requests which the engine no longer has is sent with what the tables have of them.
 */
import type { Db } from '../../db/client.ts'
import type {
  CancelAllCommand,
  LookAgain,
  OrdersAnswer,
  OrdersCommand,
} from '../../domain/exchange/decide/orders/command.ts'
import type { MarketId, Seq } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { EngineCalls } from '../engine-reply.ts'
import { ApiError } from '../errors.ts'
import type { Metrics } from '../metrics.ts'
import { type CommandTurn, createAccountOrder } from './account-order.ts'
import { storedAnswer } from './client-requests.ts'
import { hashesOf } from './command.ts'
import type { CommandDispatcher, NewCommand } from './command-dispatcher.ts'
import type { FindBySalt, SaltedOrder } from './command-identity.ts'
import { afterExecution } from './earlier-attempts.ts'
import { dependsOn, type SentOrders, saltOf, toCancelAll, toOrders, withStored } from './engine-command.ts'
import { commandRefusalError } from './engine-refusals.ts'
import { reportOf, storedHashes } from './engine-report.ts'
import type { GroupLogger } from './group.ts'
import type { ShardEpochs } from './shard-epochs.ts'
import { saltKey } from './state-keys.ts'
import type { FindOrders } from './stored-orders.ts'

export interface EngineDispatcherPorts {
  readonly engine: EngineCalls
  readonly db: Db
  readonly epochs: ShardEpochs
  readonly findBySalt: FindBySalt
  readonly findOrders: FindOrders
  readonly clock: Clock
  readonly killPoint: KillPointHook<'after-placement-commit' | 'after-request-commit'>
  readonly logger: GroupLogger
  readonly metrics: Pick<Metrics, 'gauge'>
}

export interface EngineDispatcherOptions {
  readonly commandTimeoutMs: number
  /** Commands that are not answered; further ones are refused at once. */
  readonly maxQueue: number
}

type AnyCommand = NewCommand<unknown>

export function createEngineDispatcher(
  ports: EngineDispatcherPorts,
  { commandTimeoutMs, maxQueue }: EngineDispatcherOptions,
): CommandDispatcher {
  const { engine, db, clock, killPoint, logger, epochs, findBySalt, findOrders } = ports
  const order = createAccountOrder()
  /** Rows up to which the engine has released ended things, as far as its answers have stated. */
  const released = new Map<MarketId, Seq>()
  const open = new Set<Promise<unknown>>()
  let isStopping = false
  ports.metrics.gauge(
    'api_commands_waiting',
    'Placements and cancels waiting for the engine',
    () => open.size,
  )

  /** The command with what the tables have, or the stored answer of its request. */
  async function lookedUp(sent: SentOrders, { userId, request }: AnyCommand): Promise<SentOrders | Stored> {
    const upTo = new Map(released)
    const stored = request === null ? null : await storedAnswer(db, userId, request)
    if (stored !== null) return { stored }
    const { items } = sent.command
    const placed = items.flatMap((item) => (item.kind === 'place' ? [saltOf(item)] : []))
    const hashes = items.flatMap((item) =>
      item.kind === 'cancel' && 'hash' in item.target ? [item.target.hash] : [],
    )
    const [salts, orders] = await Promise.all([
      Promise.all(placed.map(async (one) => [keyOfSalt(one), await findBySalt(one)] as const)),
      findOrders(hashes),
    ])
    const bySalt = new Map(salts)
    return withStored(sent, upTo, {
      bySalt: (one) => bySalt.get(keyOfSalt(one)),
      byHash: (hash) => orders.get(hash),
    })
  }

  function note({ upTo }: LookAgain): void {
    for (const { marketId, seq } of upTo) if (seq > (released.get(marketId) ?? 0)) released.set(marketId, seq)
  }

  function send(sent: OrdersCommand | CancelAllCommand, { turn, deadline }: Sending): Promise<OrdersAnswer> {
    const budgetMs = deadline - clock.now()
    if (budgetMs <= 0) throw new ApiError('OVERLOADED', {}, '1')
    const answer = engine.decide<'orders' | 'cancel_all'>(sent, budgetMs)
    turn.sent()
    return answer
  }

  /**
   * Sends the command until the engine has decided it. An earlier placement may have to be sent again, too: a cancel then waits for its answer instead of
   * missing its order.
   */
  async function decided(command: AnyCommand, sending: Sending): Promise<Decided | Stored> {
    const all = toCancelAll(command)
    if (all !== null) {
      if (released.size > 0) await sending.turn.afterPlacements()
      return { answer: await send(all, sending), refused: [] }
    }
    let sent = toOrders(command)
    let isStale = dependsOn(sent.command, released)
    for (;;) {
      if (isStale) {
        if (command.kind === 'cancel') await sending.turn.afterPlacements()
        const found = await lookedUp(sent, command)
        if ('stored' in found) return found
        sent = found
      }
      const answer = await send(sent.command, sending)
      if (answer.kind !== 'look_again') return { answer, refused: sent.refused }
      note(answer)
      isStale = true
    }
  }

  async function execute(command: AnyCommand): Promise<unknown> {
    const turn = order.begin(command.userId, command.kind === 'place')
    try {
      const sending = { turn, deadline: clock.now() + commandTimeoutMs }
      await turn.begins
      await epochs.refresh()
      const found = await decided(command, sending)
      return await ('stored' in found ? replayed(command, found.stored) : resultOf(found, command))
    } finally {
      turn.ended()
    }
  }

  async function resultOf({ answer, refused }: Decided, command: AnyCommand): Promise<unknown> {
    switch (answer.kind) {
      case 'refused':
        throw commandRefusalError(answer.refusal, refused)
      case 'repeated':
        return replayed(command, JSON.stringify(answer.request))
      case 'look_again':
        throw new Error('the engine has to look up nothing for a cancel of all orders')
      case 'done':
        logger.debug({ order_hashes: hashesOf(command) }, 'command stored by the engine')
    }
    killPoint('after-placement-commit')
    if (command.request !== null) killPoint('after-request-commit')
    const stored = await afterExecution(logger, {}, () => findOrders(storedHashes(answer)))
    const makers = new Map(
      command.items.flatMap((item) => (item.kind === 'place' ? [[item.order.hash, item.order.maker]] : [])),
    )
    const { bookmark } = epochs
    const report = reportOf(answer, { refused, makers, stored, bookmark, now: clock.now() })
    return command.answer(report).result
  }

  /** A repeated cancel shows the present state of its orders. */
  const replayed = (command: AnyCommand, stored: string): Promise<unknown> =>
    afterExecution(logger, {}, async () => {
      const hashes = command.items.flatMap((item) => (item.kind === 'cancel' ? [item.hash] : []))
      const orders = await findOrders(hashes)
      return command.replay(stored, (hash) => orders.get(hash))
    })

  return {
    hasSteps: true,
    async submit<Result>(command: NewCommand<Result>): Promise<Result> {
      if (isStopping) throw new ApiError('SHUTTING_DOWN', {}, '1')
      if (open.size >= maxQueue) throw new ApiError('OVERLOADED', {}, '1')
      const result = execute(command as AnyCommand)
      open.add(result)
      try {
        return (await result) as Result
      } finally {
        open.delete(result)
      }
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
  readonly answer: OrdersAnswer
  readonly refused: SentOrders['refused']
}

/** The request was executed before, and the engine no longer has it. */
interface Stored {
  readonly stored: string
}

const keyOfSalt = ({ marketId, maker, salt }: SaltedOrder): string => saltKey(marketId, maker, BigInt(salt))

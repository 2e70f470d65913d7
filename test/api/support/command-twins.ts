/**
 * Executes the same command twice: by the statements of the api on its tables, and by its dispatcher over an engine, which decides on the state folded from
 * the journal. The statements run before the engine answers, so that the tables have what an engine would have written.
 */
import type pg from 'pg'
import type { Command, CommandReport, Item, ItemResult } from '../../../api/commands/command.ts'
import type { CommandDispatcher, NewCommand } from '../../../api/commands/command-dispatcher.ts'
import { createFindBySalt } from '../../../api/commands/command-identity.ts'
import { type CommandDecision, decide } from '../../../api/commands/decide.ts'
import { createEngineDispatcher } from '../../../api/commands/engine-dispatcher.ts'
import type { GroupChanges } from '../../../api/commands/group-changes.ts'
import type { StoredOrder } from '../../../api/commands/group-state.ts'
import { openGroup } from '../../../api/commands/open-group.ts'
import { createShardEpochs, type ShardEpochs } from '../../../api/commands/shard-epochs.ts'
import { createFindOrders, type FindOrders } from '../../../api/commands/stored-orders.ts'
import { commitGroup } from '../../../api/commands/write-group.ts'
import { createEngineCalls } from '../../../api/engine-reply.ts'
import { ApiError } from '../../../api/errors.ts'
import { createPool } from '../../../db/client.ts'
import type { Entry } from '../../../domain/exchange/apply.ts'
import { decideCancelAll } from '../../../domain/exchange/decide/orders/cancel-all.ts'
import type {
  CancelAllCommand,
  CancelAllStep,
  OrdersAnswer,
  OrdersCommand,
} from '../../../domain/exchange/decide/orders/command.ts'
import { decideOrders } from '../../../domain/exchange/decide/orders/decide-orders.ts'
import { type Decider, decideOn } from '../../../domain/exchange/decide.ts'
import type { Inputs } from '../../../domain/exchange/inputs.ts'
import { digestOf } from '../../../domain/exchange/state.ts'
import { toHex } from '../../../domain/hex.ts'
import { marketShard } from '../../../domain/journal/journal-row.ts'
import type { RequestCompleted } from '../../../domain/journal/request-rows.ts'
import type { Millis, Price, Seq } from '../../../domain/units.ts'
import type { Engine } from '../../../keeper/engine/link/engine.ts'
import { ShadowRun } from '../../../stack/shadow/shadow-run.ts'
import type { ExchangeFixture } from './exchange-fixture.ts'

const LIMITS = { oracleMaxAgeMs: 600_000, chainMaxAgeMs: 600_000 }
const CHAIN_ID = 6343

/** A command without what both sides derive from it. */
export type TwinCommand = Pick<Command, 'kind' | 'userId' | 'markets' | 'items' | 'isAtomic' | 'request'>

/** Rows and answer of a command, in terms that both sides share. */
export interface Outcome {
  /** By shard. */
  readonly rows: Readonly<Record<string, readonly unknown[]>>
  readonly answer: unknown
}

export class CommandTwins {
  readonly shadow: ShadowRun
  readonly epochs: ShardEpochs
  readonly findOrders: FindOrders
  /** Errors that the dispatcher has logged. */
  readonly faults: object[] = []
  readonly #exchange: ExchangeFixture
  readonly #pool: pg.Pool

  constructor(exchange: ExchangeFixture) {
    this.#exchange = exchange
    this.shadow = new ShadowRun(exchange.db)
    this.epochs = createShardEpochs(exchange.db, { now: () => Date.now() as Millis })
    this.findOrders = createFindOrders(exchange.db)
    this.#pool = createPool({ url: exchange.url, connections: 1, name: 'twins', idleInTransactionMs: 0 })
  }

  async start(): Promise<void> {
    await this.shadow.adoptUsers()
  }

  stop(): Promise<void> {
    return this.#pool.end()
  }

  async inputs(now: Millis): Promise<Inputs> {
    const reports = await this.#exchange.db
      .selectFrom('oracle_reports')
      .selectAll()
      .where('feed', '=', 'index')
      .execute()
    const chain = await this.#exchange.db
      .selectFrom('chain_progress')
      .select('completed_at')
      .executeTakeFirstOrThrow()
    const byMarket = new Map(
      reports.map(({ market_id, price, observed_at }) => [
        market_id,
        { price: price as Price, observedAt: observed_at as Millis, signatures: '0x' as const },
      ]),
    )
    return {
      now,
      report: (marketId) => byMarket.get(marketId) ?? null,
      session: () => null,
      reportRules: () => null,
      headTime: now,
      chainSeenAt: chain.completed_at as Millis | null,
      limits: LIMITS,
    }
  }

  /** Runs `engine` on the state without changing it. */
  decideOnState<EngineCommand, Answer, Next>(
    decider: Decider<EngineCommand, Answer, Next>,
    command: EngineCommand,
    inputs: Inputs,
  ) {
    const before = toHex(digestOf(this.shadow.state))
    const decision = decideOn<EngineCommand, Answer, Next>(this.shadow.state, inputs, { decider, command })
    if (toHex(digestOf(this.shadow.state)) !== before) throw new Error('a decision has changed the state')
    return decision
  }

  /** Executes the command on both sides, which are to agree. */
  async run(twin: TwinCommand, now: Millis): Promise<TwinRun> {
    await this.shadow.follow()
    const inputs = await this.inputs(now)
    let decided: EngineDecision | undefined
    let tables: TableDecision | undefined
    const engine: Engine = {
      submit: async (command) => {
        const taken = command as unknown as OrdersCommand | CancelAllCommand
        decided = this.#decideByEngine(taken, inputs)
        tables = await this.#decideInTables(twin, now)
        return { answer: decided.answer as never }
      },
      inform: async () => {
        throw new Error('a command informs of nothing')
      },
    }
    const answer = await this.#dispatcherOver(engine, now)
      .submit<unknown>(this.#commandOf(twin))
      .then(
        (result) => answerOf({ result }, twin),
        (error: unknown) => {
          if (error instanceof ApiError) return errorOf(error)
          throw error
        },
      )
    const { entries, answer: decision } = decided as EngineDecision
    const { outcome, report } = tables as TableDecision
    return { engine: { rows: entriesOf(entries), answer }, tables: outcome, entries, decision, report }
  }

  #dispatcherOver(engine: Engine, now: Millis): CommandDispatcher {
    const { db } = this.#exchange
    const logger = { debug() {}, warn() {}, error: (facts: object) => void this.faults.push(facts) }
    const options = { commandTimeoutMs: 5_000, maxQueue: 10 }
    return createEngineDispatcher(
      {
        engine: createEngineCalls(engine, logger, options),
        db,
        epochs: this.epochs,
        findBySalt: createFindBySalt(db),
        findOrders: this.findOrders,
        clock: { now: () => now },
        killPoint: () => {},
        logger,
        metrics: { gauge() {} },
      },
      options,
    )
  }

  #decideByEngine(command: OrdersCommand | CancelAllCommand, inputs: Inputs): EngineDecision {
    if (command.kind === 'orders') return this.decideOnState(decideOrders, command, inputs)
    const step = this.decideOnState<CancelAllCommand | CancelAllStep, OrdersAnswer, CancelAllStep>(
      decideCancelAll,
      command,
      inputs,
    )
    if (step.next !== null)
      throw new Error('the accounts of this test have no more orders than one step ends')
    return step
  }

  #commandOf(twin: TwinCommand): NewCommand<unknown> {
    return {
      ...twin,
      covers: [],
      answer: (report) => ({
        result: report,
        stored: twin.request && JSON.stringify(outcomeOf(report, twin)),
      }),
      replay: () => ({ repeated: twin.request?.id }),
    }
  }

  /** Decides by the api's statements, and commits. */
  async #decideInTables(twin: TwinCommand, now: Millis): Promise<TableDecision> {
    const command: Command = { ...this.#commandOf(twin), arrivedAt: now, resolve() {}, reject() {} }
    const marketIds = twin.markets.map(({ marketId }) => marketId)
    const scope = { chainId: CHAIN_ID, marketIds, isSpanning: marketIds.length !== 1 }
    const client = await this.#pool.connect()
    try {
      const state = await openGroup(client, scope, [command])
      const { changes, answers } = decide([command], state, now, LIMITS)
      await commitGroup(client, changes, now)
      const decision = answers[0] as CommandDecision
      const isDone = !(decision instanceof ApiError) && 'itemResults' in (decision.result as object)
      return {
        outcome: { rows: rowsOf(changes), answer: answerOf(decision, twin) },
        report: isDone ? ((decision as { result: unknown }).result as CommandReport) : null,
      }
    } finally {
      client.release()
    }
  }
}

interface EngineDecision {
  readonly entries: readonly Entry[]
  readonly answer: OrdersAnswer
}

interface TableDecision {
  readonly outcome: Outcome
  /** Null for a refused or repeated command. */
  readonly report: CommandReport | null
}

export interface TwinRun {
  readonly engine: Outcome
  readonly tables: Outcome
  readonly entries: readonly Entry[]
  readonly decision: OrdersAnswer
  readonly report: CommandReport | null
}

function rowsOf({ rows, spanned }: GroupChanges): Outcome['rows'] {
  const byShard = [...rows].map(([marketId, list]) => [marketShard(marketId), list] as const)
  const all = [...byShard, ['accounts', spanned] as const].filter(([, list]) => list.length > 0)
  return plain(Object.fromEntries(all)) as Outcome['rows']
}

/** The engine's rows in the same form; the result of a request is no row of the tables' side. */
function entriesOf(entries: readonly Entry[]): Outcome['rows'] {
  const byShard: Record<string, unknown[]> = {}
  for (const { shard, row } of entries)
    if (row.kind !== 'request_completed') byShard[shard] = [...(byShard[shard] ?? []), plain(row)]
  return byShard
}

export const requestOf = (entries: readonly Entry[]): (RequestCompleted & { readonly seq: Seq }) | null => {
  const found = entries.find(({ row }) => row.kind === 'request_completed')
  return found === undefined ? null : { ...(found.row as RequestCompleted), seq: found.seq as Seq }
}

/** Without undefined fields, amounts as text. */
export const plain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? `${inner}` : inner)))

const errorOf = ({ code, context, retryAfter, outcome }: ApiError): unknown =>
  plain({ error: code, context, retryAfter, outcome })

function answerOf(decision: CommandDecision, twin: TwinCommand): unknown {
  if (decision instanceof ApiError) return errorOf(decision)
  const result = decision.result as CommandReport | { readonly repeated: string }
  return 'repeated' in result ? result : outcomeOf(result, twin)
}

const outcomeOf = ({ itemResults, balance, read_after }: CommandReport, { items }: TwinCommand): unknown =>
  plain({
    results: itemResults.map((result, at) => resultOf(result, items[at])),
    balance,
    readAfter: [read_after.shard_id.split('.')[0], Number(read_after.shard_seq)],
  })

function resultOf(result: ItemResult, item: Item | undefined): unknown {
  if (result instanceof ApiError) return errorOf(result)
  const readAfter = [result.read_after.shard_id.split('.')[0], Number(result.read_after.shard_seq)]
  const order = orderOf(result.order as StoredOrder)
  const { isDuplicate } = result
  if (result.kind === 'placed')
    return { kind: item?.kind, isDuplicate, oracle: result.oracle, order, readAfter }
  return { kind: 'cancel', isDuplicate, cancelled: result.cancelled, order, readAfter }
}

const orderOf = (order: StoredOrder) => ({
  order_id: order.order_id,
  seq: order.seq,
  user_id: order.user_id,
  maker: order.maker,
  signer: order.signer,
  hash: order.hash,
  signature: order.signature,
  salt: order.salt,
  side: order.side,
  type: order.type,
  price: order.price,
  quantity: order.quantity,
  trigger: order.trigger,
  leverage: order.leverage,
  reduce_only: order.reduce_only,
  expiration: order.expiration,
  alive_until: order.alive_until,
  accepted_at: order.accepted_at,
  status: order.status,
  status_reason: order.status_reason,
  closing_reason: order.closing_reason,
  closed_by: order.closed_by,
  note: order.note,
  filled: order.filled,
  settling: order.settling,
  openable: order.openable,
  reserved: order.reserved,
  reserved_price: order.reserved_price,
  held: order.held,
  partial_slot: order.partial_slot,
  forced: order.forced,
  triggered: order.triggered,
  ended_at: order.ended_at,
  client_order_id: order.client_order_id,
  filled_value: order.filled_value,
  fee: order.fee,
  protection_price: order.protection_price,
  updated_at: order.updated_at,
})

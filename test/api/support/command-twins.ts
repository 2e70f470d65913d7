/** Decides the same command twice: by the statements of the api on its tables, and by the engine's rules on the state folded from the journal. */
import type pg from 'pg'
import type { Command, CommandReport, Item, ItemResult } from '../../../api/commands/command.ts'
import { type CommandDecision, decide } from '../../../api/commands/decide.ts'
import { commandRefusalError, itemRefusalError } from '../../../api/commands/engine-refusals.ts'
import type { GroupChanges } from '../../../api/commands/group-changes.ts'
import type { StoredOrder } from '../../../api/commands/group-state.ts'
import { openGroup } from '../../../api/commands/open-group.ts'
import { commitGroup } from '../../../api/commands/write-group.ts'
import { ApiError, type ItemError, itemError } from '../../../api/errors.ts'
import { createPool } from '../../../db/client.ts'
import type { Entry } from '../../../domain/exchange/apply.ts'
import type {
  Done,
  ItemResult as EngineResult,
  OrderFacts,
  OrdersAnswer,
} from '../../../domain/exchange/decide/orders/command.ts'
import { type Decider, decideOn } from '../../../domain/exchange/decide.ts'
import type { Inputs } from '../../../domain/exchange/inputs.ts'
import { digestOf } from '../../../domain/exchange/state.ts'
import { toHex } from '../../../domain/hex.ts'
import { marketShard } from '../../../domain/journal/journal-row.ts'
import type { RequestCompleted } from '../../../domain/journal/request-rows.ts'
import { orderIdOf } from '../../../domain/orders/order.ts'
import type { MarketId, Millis, Price, Seq } from '../../../domain/units.ts'
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
  readonly #exchange: ExchangeFixture
  readonly #pool: pg.Pool

  constructor(exchange: ExchangeFixture) {
    this.#exchange = exchange
    this.shadow = new ShadowRun(exchange.db)
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

  /** Decides by the api's statements, and commits. */
  async decideInTables(twin: TwinCommand, now: Millis): Promise<Outcome> {
    const command: Command<CommandReport> = {
      ...twin,
      covers: [],
      answer: (report) => ({
        result: report,
        stored: twin.request && JSON.stringify(outcomeOf(report, twin)),
      }),
      replay: (stored) => ({ repeated: JSON.parse(stored) }) as never,
      arrivedAt: now,
      resolve: () => {},
      reject: () => {},
    }
    const marketIds = twin.markets.map(({ marketId }) => marketId)
    const scope = { chainId: CHAIN_ID, marketIds, isSpanning: marketIds.length !== 1 }
    const group = [command as Command]
    const client = await this.#pool.connect()
    try {
      const state = await openGroup(client, scope, group)
      const { changes, answers } = decide(group, state, now, LIMITS)
      await commitGroup(client, changes, now)
      return { rows: rowsOf(changes), answer: answerOf(answers[0] as CommandDecision, twin) }
    } finally {
      client.release()
    }
  }
}

function rowsOf({ rows, spanned }: GroupChanges): Outcome['rows'] {
  const byShard = [...rows].map(([marketId, list]) => [marketShard(marketId), list] as const)
  const all = [...byShard, ['accounts', spanned] as const].filter(([, list]) => list.length > 0)
  return plain(Object.fromEntries(all)) as Outcome['rows']
}

/** The engine's rows in the same form; the result of a request is no row of the tables' side. */
export function entriesOf(entries: readonly Entry[]): Outcome['rows'] {
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
  const result = decision.result as CommandReport | { readonly repeated: unknown }
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
})

const factsView = ({ order, signature, note }: OrderFacts) => ({
  order_id: orderIdOf(order.marketId, order.accepted),
  seq: order.seq,
  user_id: order.account,
  signer: signature.signer,
  hash: signature.hash,
  signature: signature.signature,
  salt: order.salt,
  side: order.side,
  type: order.type,
  price: order.price,
  quantity: order.quantity,
  trigger: order.trigger,
  leverage: order.leverage,
  reduce_only: order.reduceOnly,
  expiration: order.expiration,
  alive_until: order.aliveUntil,
  accepted_at: order.acceptedAt,
  status: order.status,
  status_reason: order.statusReason,
  closing_reason: order.closingReason,
  closed_by: note?.closedBy ?? null,
  note: note?.note ?? null,
  filled: order.filled,
  settling: order.settling,
  openable: order.openable,
  reserved: order.reserved,
  reserved_price: order.reservedPrice,
  held: order.held,
  partial_slot: order.partialSlot,
  forced: order.forced,
  triggered: note?.triggered ?? null,
  ended_at: order.endedAt,
  client_order_id: signature.clientOrderId,
})

/** Errors of the api are not restored from their JSON here: the test has them. */
const restoredFrom =
  (items: readonly Item[]) =>
  (error: ItemError): ApiError => {
    const found = items.find(
      (item) => item.kind === 'refused' && JSON.stringify(itemError(item.error)) === JSON.stringify(error),
    )
    return (found as Extract<Item, { kind: 'refused' }>).error
  }

const nameOf = (marketId: MarketId): string => (marketId === 0 ? 'accounts' : marketShard(marketId))

function engineResult(result: EngineResult, items: readonly Item[]): unknown {
  if (result.kind === 'refused') return errorOf(itemRefusalError(result.refusal, restoredFrom(items)))
  const readAfter = [nameOf(result.readAfter.marketId), result.readAfter.seq]
  const order = factsView(result.facts as OrderFacts)
  const { isDuplicate } = result
  return result.kind === 'placed'
    ? { kind: 'place', isDuplicate, oracle: result.oracle, order, readAfter }
    : { kind: 'cancel', isDuplicate, cancelled: result.cancelled, order, readAfter }
}

export const doneOf = ({ results, balance, readAfter }: Done, items: readonly Item[]): unknown =>
  plain({
    results: results.map((result) => engineResult(result, items)),
    balance,
    readAfter: [nameOf(readAfter.marketId), readAfter.seq],
  })

/** The engine's answer in the same form. A repeated command is compared by what its first answer was. */
export function engineAnswer(
  answer: OrdersAnswer,
  items: readonly Item[],
  firstAnswers: ReadonlyMap<string, unknown>,
): unknown {
  switch (answer.kind) {
    case 'done':
      return doneOf(answer, items)
    case 'refused':
      return errorOf(commandRefusalError(answer.refusal, items.length, restoredFrom(items)))
    case 'repeated':
      return { repeated: firstAnswers.get(`${answer.request.user_id} ${answer.request.client_request_id}`) }
    case 'look_again':
      throw new Error('nothing is released, so nothing has to be looked up again')
  }
}

/**
 * The engine in the process of a test: it decides each command with the machine of the product and stores its rows and tables, in one transaction that
 * locks all journals. Before each command it adopts what the test, or the old writers of the tables, have written meanwhile.
 */
import { CompiledQuery } from 'kysely'
import { isConnectionError } from '../../api/database-errors.ts'
import type { Db, Tx } from '../../db/client.ts'
import { readClock } from '../../db/clock.ts'
import { lockShards } from '../../db/journal.ts'
import { notifyQuery } from '../../db/notifications.ts'
import { AppliedRows } from '../../domain/exchange/applied-rows.ts'
import type { Entry } from '../../domain/exchange/apply.ts'
import type { ChainRules } from '../../domain/exchange/decide/chain/blocks.ts'
import { decideOn } from '../../domain/exchange/decide.ts'
import type { Draft } from '../../domain/exchange/draft.ts'
import type { FreshnessLimits, Inputs } from '../../domain/exchange/inputs.ts'
import { listedSpec } from '../../domain/exchange/market-terms.ts'
import type { ExchangeState } from '../../domain/exchange/state.ts'
import { ACCOUNTS_SHARD, type JournalRow, marketShard } from '../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Order } from '../../domain/orders/order.ts'
import { hashOrder } from '../../domain/orders/order-hash.ts'
import type { Feed } from '../../domain/prices/feed.ts'
import type { ReportRules } from '../../domain/prices/report.ts'
import type { OracleReport } from '../../domain/settlement/settlement.ts'
import type { MarketId, Millis, OrderHash, Price } from '../../domain/units.ts'
import type { AnswerOf, CommandKind, CommandOf, ExchangeCommand } from '../../keeper/engine/commands.ts'
import { ConnectionDeadlines } from '../../keeper/engine/connection-deadlines.ts'
import { Exchange } from '../../keeper/engine/exchange.ts'
import { decode, encode } from '../../keeper/engine/link/codec.ts'
import type { Engine, EngineReply } from '../../keeper/engine/link/engine.ts'
import { checkShape } from '../../keeper/engine/schemas.ts'
import { BatchEvidence } from '../../keeper/engine/tables/batch-evidence.ts'
import { noticesOf } from '../../keeper/engine/tables/rows.ts'
import { createTableWriter, type TableWriter } from '../../keeper/engine/tables/table-writer.ts'
import { keccak } from '../../service/crypto.ts'
import { StoredState } from '../keeper/support/stored-state.ts'
import { AdoptedTables } from './adopted-tables.ts'
import { MIRROR_PARTS } from './mirror.ts'
import { storeGroup } from './rows/journal.ts'

const BUDGET_MS = 30_000
const LIMITS: FreshnessLimits = { oracleMaxAgeMs: 600_000, chainMaxAgeMs: 600_000 }
const CHAIN_RULES = { confirmations: 1, depth: 64, sliceAccounts: 100, emptyBlocksMs: 0 }

type NoAnswer = Extract<EngineReply<never>, { readonly none: unknown }>

/** A command has this reply instead of its answer. */
export interface Fault {
  readonly reply: NoAnswer
  /** Whether the command is executed all the same. */
  readonly isExecuted: boolean
}

export interface AdoptingOptions {
  readonly now?: () => Millis
  /** Block time of the chain's head; the present time by default. */
  readonly headTime?: () => Millis | null
  /** The contract's rules for reports, of all markets. */
  readonly rules?: () => ReportRules | null
  readonly chainRules?: Partial<ChainRules>
  /** Called with each step that writes, before its commit. If it throws, the step is lost, and the engine must not be used again. */
  readonly beforeCommit?: () => void
}

export class AdoptingEngine implements Engine {
  /** Commands that have arrived, in their order. */
  readonly arrived: ExchangeCommand[] = []
  /** When the switches of connections fire, as an engine process counts it. */
  readonly deadlines = new ConnectionDeadlines()
  /** Faults of the next commands. */
  readonly faults: Fault[] = []
  /** The rows of each step that it has stored. */
  readonly groups: (readonly Entry[])[] = []
  readonly #db: Db
  readonly #options: AdoptingOptions
  readonly #stored: StoredState
  readonly #adopted: AdoptedTables
  readonly #exchange: Exchange
  readonly #writer: TableWriter
  readonly #evidence = new BatchEvidence()
  #inputs: Inputs | null = null
  #turn: Promise<unknown> = Promise.resolve()

  constructor(db: Db, options: AdoptingOptions = {}) {
    this.#db = db
    this.#options = options
    this.#stored = new StoredState(db, true)
    this.#adopted = new AdoptedTables(this.#stored.state)
    this.#exchange = new Exchange(new AppliedRows(this.#stored.state), {
      inputsAt: () => this.#inputs as Inputs,
      hashOrder: this.hashOrder,
      chainRules: { ...CHAIN_RULES, ...options.chainRules },
      keepInputs: (...batch) => this.keepInputs(...batch),
    })
    this.#writer = createTableWriter(this.#stored.state, MIRROR_PARTS)
  }

  get state(): ExchangeState {
    return this.#stored.state
  }

  readonly hashOrder = (order: Order, marketId: MarketId): OrderHash =>
    hashOrder(order, listedSpec(this.#stored.state, marketId) as MarketSpec, keccak)

  submit<Kind extends CommandKind>(
    command: CommandOf<Kind>,
    budgetMs = BUDGET_MS,
  ): Promise<EngineReply<AnswerOf<Kind>>> {
    const sent = decode(JSON.parse(JSON.stringify(encode(command)))) as ExchangeCommand
    checkShape(sent)
    // Faults concern the commands around a barrier, which has no effect.
    if (sent.kind !== 'barrier') this.arrived.push(sent)
    const fault = sent.kind === 'barrier' ? undefined : this.faults.shift()
    if (fault?.isExecuted === false) return Promise.resolve(fault.reply)
    return this.#within(budgetMs, sent).then((reply) => {
      if (fault !== undefined) return fault.reply
      return 'none' in reply
        ? reply
        : { answer: decode(JSON.parse(JSON.stringify(encode(reply.answer)))) as AnswerOf<Kind> }
    })
  }

  /** The test's options and tables have what clients inform of. */
  async inform(): Promise<void> {}

  /** Decides by one step of a command alone. `spec`: replaces the one with which its market was listed. */
  decide<Answer>(decider: (draft: Draft, inputs: Inputs) => Answer, spec?: MarketSpec): Promise<Answer> {
    return this.#inTurn(() =>
      this.#inTransaction(async (tx) => {
        if (spec !== undefined) this.#stored.adoptSpec(spec)
        const { entries, answer } = decideOn(this.#stored.state, this.#inputs as Inputs, {
          decider: (draft, inputs): Answer => decider(draft, inputs),
          command: null,
        })
        await this.#store(tx, entries)
        return answer
      }),
    )
  }

  /** The inputs of a batch that the present step decides. */
  keepInputs(...batch: Parameters<BatchEvidence['keep']>): void {
    this.#evidence.keep(...batch)
  }

  /** Fires the switches that are due at this time. Those of accounts are due by the time of the decision. */
  async fireSwitches(now: Millis): Promise<void> {
    const due = this.deadlines.due(now)
    await this.#inTurn(() => this.#execute({ kind: 'fire_switches', due }))
    this.deadlines.fired(due)
  }

  /** Commands that arrive now wait until the returned function is called. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    void this.#inTurn(() => promise)
    return resolve
  }

  /** A command that has not begun within its budget is never executed. */
  async #within(budgetMs: number, command: ExchangeCommand): Promise<EngineReply<unknown>> {
    let isExpired = false
    let hasBegun = false
    const late = Promise.withResolvers<EngineReply<unknown>>()
    const timer = setTimeout(() => {
      isExpired = true
      late.resolve({ none: hasBegun ? 'unknown' : 'not_executed' })
    }, budgetMs)
    const done = this.#inTurn(async (): Promise<EngineReply<unknown>> => {
      if (isExpired) return { none: 'not_executed' }
      hasBegun = true
      return this.#execute(command).then(
        (answer) => ({ answer }),
        (error: Error) =>
          isConnectionError(error) ? { none: 'unknown' } : { none: 'faulty', detail: error.message },
      )
    })
    return Promise.race([done, late.promise]).finally(() => clearTimeout(timer))
  }

  /** Drops what has ended from the state, in all markets and in the accounts. */
  release(): Promise<void> {
    return this.#inTurn(() =>
      this.#inTransaction(async (tx) => {
        const heads = [...this.#stored.state.heads.rows()]
        const rows = heads.map(({ marketId, seq }): Entry => {
          const row: JournalRow =
            marketId === 0
              ? { kind: 'requests_released', up_to: seq }
              : { kind: 'ended_released', up_to: seq }
          const shard = marketId === 0 ? ACCOUNTS_SHARD : marketShard(marketId)
          return { shard, seq: (seq + 1) as Entry['seq'], row }
        })
        await this.#store(tx, rows)
      }),
    )
  }

  #inTurn<Value>(work: () => Promise<Value>): Promise<Value> {
    const turn = this.#turn.then(work)
    this.#turn = turn.catch(() => {})
    return turn
  }

  async #execute(command: ExchangeCommand): Promise<unknown> {
    for (let next = command; ; ) {
      const decision = await this.#inTransaction(async (tx) => {
        const decided = this.#exchange.decide(next, { now: (this.#inputs as Inputs).now })
        await this.#store(tx, decided.rows)
        return decided
      })
      if (decision.next === null) {
        this.#follow(command)
        return decision.answer
      }
      next = decision.next
    }
  }

  #follow(command: ExchangeCommand): void {
    const { now } = this.#inputs as Inputs
    if (command.kind === 'hold_connections') this.deadlines.held(command.connections, now)
    if (command.kind === 'end_connections') this.deadlines.ended(command.connections)
  }

  /** If it fails, the rows of `work` are taken back. What was adopted stays, and is adopted again. */
  async #inTransaction<Value>(work: (tx: Tx) => Promise<Value>): Promise<Value> {
    let position = this.#exchange.position()
    try {
      return await this.#db.transaction().execute(async (tx) => {
        const shards = await tx.selectFrom('shards').select('shard').execute()
        await lockShards(
          tx,
          shards.map(({ shard }) => shard),
        )
        this.#exchange.forget(position)
        await this.#stored.followIn(tx)
        await this.#adopted.adopt(tx)
        this.#stored.state.core.undo.clear()
        this.#writer.forget()
        this.#inputs = await this.#inputsOf(tx)
        position = this.#exchange.position()
        return work(tx)
      })
    } catch (error) {
      this.#exchange.undoTo(position)
      throw error
    }
  }

  async #store(tx: Tx, rows: readonly Entry[]): Promise<void> {
    if (rows.length > 0) this.groups.push(rows)
    for (const row of rows) this.#exchange.apply(row)
    await storeGroup(tx, rows)
    const notices = noticesOf(rows)
    for (const { text, values } of [
      ...this.#evidence.statementsOf(rows),
      ...this.#writer.collect(rows),
      ...(notices.length === 0 ? [] : [notifyQuery(notices)]),
    ])
      await tx.executeQuery(CompiledQuery.raw(text, values as unknown[]))
    if (rows.length > 0) this.#options.beforeCommit?.()
  }

  async #inputsOf(tx: Tx): Promise<Inputs> {
    const { now, rules = () => null } = this.#options
    const rows = await tx.selectFrom('oracle_reports').selectAll().where('status', '<>', 'halted').execute()
    const chain = await tx.selectFrom('chain_progress').select('completed_at').executeTakeFirst()
    const reportOf = (marketId: MarketId, feed: Feed) =>
      rows.find((row) => row.market_id === marketId && row.feed === feed && row.observed_at !== null)
    const time = now === undefined ? await readClock(tx) : now()
    return {
      now: time,
      report(marketId) {
        const row = reportOf(marketId, 'index')
        return row === undefined ? null : toReport(row)
      },
      session(marketId) {
        const row = reportOf(marketId, 'session')
        if (row === undefined) return null
        const { price, observedAt, signatures } = toReport(row)
        return { endsAt: Number(price) as Millis, observedAt, signatures }
      },
      reportRules: rules,
      headTime: this.#options.headTime === undefined ? time : this.#options.headTime(),
      chainSeenAt: (chain?.completed_at ?? null) as Millis | null,
      limits: LIMITS,
    }
  }
}

const toReport = (row: {
  readonly price: bigint | null
  readonly observed_at: number | null
  readonly signatures: string | null
}): OracleReport => ({
  price: row.price as Price,
  observedAt: row.observed_at as Millis,
  signatures: row.signatures as OracleReport['signatures'],
})

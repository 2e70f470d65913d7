/**
 * An engine in the test's own process: it decides one command at a time on a state in memory, and stores each group of rows with the tables of readers in Postgres.
 * A test can lose its replies, end it between two steps of long work, and start it again.
 */
import type pg from 'pg'
import { createPool, type Db } from '../../db/client.ts'
import { readWritten } from '../../db/engine-journal.ts'
import { AppliedRows } from '../../domain/exchange/applied-rows.ts'
import type { Entry } from '../../domain/exchange/apply.ts'
import { load, serialize } from '../../domain/exchange/checkpoint.ts'
import type { ChainRules } from '../../domain/exchange/decide/chain/blocks.ts'
import { listedSpec } from '../../domain/exchange/market-terms.ts'
import type { ExchangeState } from '../../domain/exchange/state.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { hashOrder } from '../../domain/orders/order-hash.ts'
import type { Millis } from '../../domain/units.ts'
import type { AnswerOf, CommandKind, CommandOf, ExchangeCommand } from '../../keeper/engine/commands.ts'
import { Exchange } from '../../keeper/engine/exchange.ts'
import { Facts, type Inform } from '../../keeper/engine/facts.ts'
import { decode, encode } from '../../keeper/engine/link/codec.ts'
import type { Engine, EngineReply } from '../../keeper/engine/link/engine.ts'
import { GROUP_VERSION, type Journal, type Tables } from '../../keeper/engine/ports.ts'
import { createJournal, createLease, createTables } from '../../keeper/engine/store.ts'
import { BatchEvidence } from '../../keeper/engine/tables/batch-evidence.ts'
import { keccak } from '../../service/crypto.ts'
import { ShadowRun } from '../../stack/shadow/shadow-run.ts'
import { adoptUsers, MIRROR_PARTS } from './mirror.ts'

export interface LocalEngineOptions {
  readonly chainRules?: Partial<ChainRules>
  readonly now?: () => Millis
  /** The state that the tables have; by default it is read from them. The engine begins with a copy. */
  readonly state?: ExchangeState
}

const RULES: ChainRules = { confirmations: 1, depth: 1_000, sliceAccounts: 1_000, emptyBlocksMs: 0 }
const LIMITS = { oracleMaxAgeMs: 600_000, chainMaxAgeMs: 600_000 }
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

function throwRefused(): never {
  throw new Error('the database has refused a row of a table')
}

const LOST = { none: 'unknown' } as const

export class LocalEngine implements Engine {
  readonly #pool: pg.Pool
  readonly #token: number
  readonly #chunks: ReturnType<typeof serialize> extends Iterable<infer Chunk> ? Chunk[] : never
  readonly #facts = new Facts(LIMITS)
  readonly #rules: ChainRules
  readonly #now: () => Millis
  #machine!: Exchange
  #journal!: Journal<Entry>
  #tables!: Tables<Entry>
  /** The last group, and the last one that the test had stored before. */
  #number: number
  readonly #begun: number
  #last: Promise<unknown> = Promise.resolve()
  /** Replies to commands of these kinds are lost once each, after they were executed. */
  readonly lost: CommandKind[] = []
  /** Commands of these kinds do not reach the engine, once each. */
  readonly dropped: CommandKind[] = []
  /** The process ends behind so many further steps; null: it does not. */
  stepsLeft: number | null = null
  /** Kinds of the commands that were executed, in their order, and their answers. */
  readonly log: { readonly kind: CommandKind; readonly answer: unknown }[] = []

  private constructor(
    { pool, token, head }: { readonly pool: pg.Pool; readonly token: number; readonly head: number },
    state: ExchangeState,
    options: LocalEngineOptions,
  ) {
    this.#pool = pool
    this.#token = token
    this.#number = head
    this.#begun = head
    this.#chunks = [...serialize(state)] as never
    this.#rules = { ...RULES, ...options.chainRules }
    this.#now = options.now ?? (() => Date.now() as Millis)
    this.#begin(state)
  }

  /** Over what the database has. Nothing else may write the tables of the exchange from here on. */
  static async over(
    { db, url }: { readonly db: Db; readonly url: string },
    options: LocalEngineOptions = {},
  ): Promise<LocalEngine> {
    const begun = options.state ?? (await stateOfTables(db))
    const pool = createPool({ url, connections: 2, name: 'local engine', idleInTransactionMs: 0 })
    const lease = createLease(pool)
    const token = await lease.take(await lease.read())
    if (token === null) throw new Error('another engine has the lease')
    const head = await readWritten(pool)
    return new LocalEngine({ pool, token, head }, load([...serialize(begun)]), options)
  }

  get state(): ExchangeState {
    return this.#machine.applied.state
  }

  /** A new process: its state comes from the checkpoint and the journal. */
  async restart(): Promise<void> {
    await this.#last
    this.stepsLeft = null
    this.#begin(load(this.#chunks as never))
    for (const { number, rows } of await this.#journal.read(this.#begun, 1_000_000)) {
      for (const row of rows) this.#machine.apply(row)
      this.#number = number
    }
    this.#begin(this.state)
  }

  close(): Promise<void> {
    return this.#pool.end()
  }

  /** Writes rows as a command of another client would. */
  write(rows: readonly Pick<Entry, 'shard' | 'row'>[]): Promise<void> {
    return this.#inOrder(async () => {
      const heads = new Map<string, number>()
      const entries = rows.map(({ shard, row }) => {
        const seq = (heads.get(shard) ?? this.#headOf(shard)) + 1
        heads.set(shard, seq)
        return { shard, seq, row }
      })
      await this.#store(entries)
    })
  }

  submit<Kind extends CommandKind>(command: CommandOf<Kind>): Promise<EngineReply<AnswerOf<Kind>>> {
    const kind = command.kind as CommandKind
    return this.#inOrder(async () => {
      if (take(this.dropped, kind)) return { none: 'not_executed' } as never
      const answer = await this.#run(decode(encode(command)) as ExchangeCommand)
      if (answer === LOST) return LOST as never
      this.log.push({ kind, answer })
      if (take(this.lost, kind)) return LOST as never
      return { answer: decode(encode(answer)) as AnswerOf<Kind> }
    })
  }

  async inform(fact: Inform): Promise<void> {
    this.#facts.note(decode(encode(fact)) as Inform)
  }

  #begin(state: ExchangeState): void {
    state.core.undo.clear()
    this.#tables = createTables(this.#pool, state, {
      logger: SILENT,
      onRefused: throwRefused,
      further: MIRROR_PARTS,
    })
    this.#tables.begin()
    const evidence = new BatchEvidence()
    this.#journal = createJournal<Entry>(this.#pool, evidence)
    this.#machine = new Exchange(new AppliedRows(state), {
      hashOrder: (order, marketId) => hashOrder(order, listedSpec(state, marketId) as MarketSpec, keccak),
      chainRules: this.#rules,
      inputsAt: this.#facts.inputsAt,
      keepInputs: (...batch) => evidence.keep(...batch),
    })
  }

  async #run(command: ExchangeCommand): Promise<unknown> {
    for (let next = command; ; ) {
      if (this.stepsLeft === 0) return LOST
      if (this.stepsLeft !== null) this.stepsLeft--
      const { rows, answer, next: rest } = this.#machine.decide(next, { now: this.#now() })
      await this.#store(rows)
      if (rest === null) return answer
      next = rest
    }
  }

  async #store(entries: readonly Entry[]): Promise<void> {
    if (entries.length === 0) return
    const rows = JSON.parse(JSON.stringify(entries)) as Entry[]
    const before = this.#machine.digest()
    for (const row of rows) this.#machine.apply(row)
    const group = { number: this.#number + 1, token: this.#token, version: GROUP_VERSION, rows, before }
    if (!(await this.#journal.append({ ...group, digest: this.#machine.digest() })))
      throw new Error(`group ${group.number} does not follow the head`)
    const from = this.#number++
    if (!(await this.#tables.collect(rows).run({ token: this.#token, from, to: this.#number })))
      throw new Error(`the tables do not contain exactly the groups up to ${from}`)
    this.#machine.forget(this.#machine.position())
  }

  #headOf(shard: string): number {
    for (const { marketId, seq } of this.state.heads.rows())
      if (shard === (marketId === 0 ? 'accounts' : `m${marketId}`)) return seq
    return 0
  }

  #inOrder<Result>(work: () => Promise<Result>): Promise<Result> {
    const run = this.#last.catch(() => {}).then(work)
    this.#last = run
    return run
  }
}

async function stateOfTables(db: Db): Promise<ExchangeState> {
  const shadow = new ShadowRun(db)
  await adoptUsers(db, shadow.state)
  await shadow.follow()
  return shadow.state
}

function take<Value>(values: Value[], value: Value): boolean {
  const at = values.indexOf(value)
  if (at >= 0) values.splice(at, 1)
  return at >= 0
}

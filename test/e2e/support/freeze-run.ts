/**
 * Trading on every market of an exchange with two of each process, while one process at a time is stopped by SIGSTOP. Two accounts per market
 * send orders that cross to the apis that are not stopped, so that each interval of a market's auction has a batch.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '../../../client/client.ts'
import { ClearbatchError } from '../../../client/errors.ts'
import { saltSequence } from '../../../client/salts.ts'
import type { Stack } from '../../../stack/stack.ts'
import type { Managed } from '../../../stack/supervisor.ts'
import { type SecondInstance, startSecondInstance } from './second-instance.ts'
import { differencesOf, nearOracle } from './stack.ts'

/** A process to stop; `hasTwin` if another one takes over its work. */
interface Target {
  readonly name: string
  readonly hasTwin: boolean
  signal(signal: NodeJS.Signals): void
  /** Null for a service. */
  readonly process: Managed | null
  /** The api at this address is stopped with it. */
  readonly baseUrl?: string
}

/** The longest times of any market, ms, and the markets that they belong to. */
export interface Frozen {
  readonly process: string
  readonly stoppedAt: string
  readonly batchMs: number
  readonly placementMs: number
  readonly markets: { readonly batchMs: number; readonly placementMs: number }
  /** Pairs without two accepted orders since the stop before, by market and code. */
  readonly refusals: Readonly<Record<string, number>>
}

/** A process is stopped at any instant of this time. */
const INSTANT_MS = 1_000
/** Longer than the bound of every law, so that only another process can keep it. */
const STOPPED_MS = { least: 5_500, range: 1_500 }
/** A service without a twin: its clients meanwhile wait, retry or fail. */
const SERVICE_STOPPED_MS = { least: 500, range: 4_000 }
/** After a process continues: what it sends late, and the next batches. */
const AFTER_MS = 6_000
/** A sequence of salts starts at the time in milliseconds, times 1,024: room for more orders than a client sends. */
const SALT_RANGE_MS = 1_000_000
/** Bound of the time until processes that have ended run again and follow. */
const RECOVERY_MS = 120_000
/** A member of the engine that is further behind, in seconds, cannot take over at once. */
const MOST_LAG_S = 0.5
/** Between two pairs of orders of one market. */
const PACE_MS = 250
/** Longer than any bound: an order without an answer is a violation. */
const ORDER_BUDGET_MS = 8_000
/**
 * An order whose partner was rejected or came late must not rest for long: once its account takes its turn on the other side, its next order
 * would end as a trade of the account with itself, and leave that order's partner over.
 */
const LIFE_SECONDS = 2
/** Pairs between two changes of sides: four seconds. */
const TURN_ROUNDS = 16
/** So that the positions of a turn need little margin, for example 25,000 USDM at a price of 63,000. */
const quantityAt = (price: string): string => (Number(price) > 10_000 ? '0.05' : '1')
/** Most pairs of one market that wait for an answer: more than are sent while a service is stopped. */
const MOST_PENDING = 30

interface Trading {
  readonly marketId: number
  /** By base URL of an api, the clients of two accounts. */
  readonly clients: ReadonlyMap<string, readonly [Client, Client]>
  /** When the api accepted an order. */
  readonly acceptedAt: number[]
}

export class FreezeRun {
  readonly #stack: Stack
  readonly #second: SecondInstance
  readonly #trading: readonly Trading[]
  readonly #loops: readonly Promise<void>[]
  #stopped: Target | null = null
  #isOver = false
  #isPaused = false
  #busy = 0
  #clients = 0
  /** Pairs without two accepted orders, by market and code. */
  #refusals: Record<string, number> = {}

  private constructor(stack: Stack, second: SecondInstance) {
    this.#stack = stack
    this.#second = second
    this.#trading = stack.specs.map(({ marketId }, index) => ({
      marketId,
      clients: new Map(
        [stack.file.base_url, second.baseUrl].map((baseUrl) => [
          baseUrl,
          [this.#client(baseUrl, 2 * index), this.#client(baseUrl, 2 * index + 1)],
        ]),
      ),
      acceptedAt: [],
    }))
    this.#loops = this.#trading.map((trading) => this.#trade(trading))
  }

  /** `logDir`: of the second process of each kind. */
  static async start(stack: Stack, logDir: string): Promise<FreezeRun> {
    const run = new FreezeRun(stack, await startSecondInstance(stack, logDir))
    await sleep(AFTER_MS)
    return run
  }

  /** Stops a process whose name begins with `name`, lets it continue, and returns the longest times to a batch and to an accepted order. */
  async freeze(random: (end: number) => number, name: string): Promise<Frozen> {
    const targets = this.#targets().filter((target) => target.name.startsWith(name))
    if (targets.length === 0) throw new Error(`no process has a name that begins with ${name}`)
    const target = targets[random(targets.length)] as Target
    await this.#recovered()
    const { least, range } = target.hasTwin ? STOPPED_MS : SERVICE_STOPPED_MS
    const stoppedMs = least + random(range)
    await sleep(random(INSTANT_MS))
    const stoppedAt = Date.now()
    this.#stopped = target
    target.signal('SIGSTOP')
    await sleep(stoppedMs)
    target.signal('SIGCONT')
    this.#stopped = null
    const continuedAt = Date.now()
    await sleep(AFTER_MS)
    const from = target.hasTwin ? stoppedAt : continuedAt
    const until = Date.now()
    const placements = this.#trading.map(({ marketId, acceptedAt }) => ({
      marketId,
      ms: longestPause(acceptedAt, from, until),
    }))
    const batches = await Promise.all(
      this.#trading.map(async ({ marketId }) => ({
        marketId,
        ms: longestPause(await this.#batchesOf(marketId, from), from, until),
      })),
    )
    const refusals = this.#refusals
    this.#refusals = {}
    const [slowestBatch, slowestPlacement] = [longestOf(batches), longestOf(placements)]
    return {
      process: target.name,
      stoppedAt: new Date(stoppedAt).toISOString(),
      batchMs: slowestBatch.ms,
      placementMs: slowestPlacement.ms,
      markets: { batchMs: slowestBatch.marketId, placementMs: slowestPlacement.marketId },
      refusals,
    }
  }

  /** One process fails at a time: processes that have ended after the stop before run again, and a member of the engine can take over. */
  async #recovered(): Promise<void> {
    const { engine, standby } = this.#stack
    const members = [engine, ...(standby === null ? [] : [standby])]
    for (const { process } of this.#targets()) await process?.ready()
    const until = Date.now() + RECOVERY_MS
    for (;;) {
      const lags = await Promise.all(members.map(lagOf))
      if (lags.every((lag) => lag !== null && lag < MOST_LAG_S)) return
      if (Date.now() > until) throw new Error(`a member of the engine is behind, s: ${lags.join(', ')}`)
      await sleep(PACE_MS)
    }
  }

  /** Differences between all that store or show the trading, once no order is settling. */
  async differences(): Promise<readonly string[]> {
    this.#isPaused = true
    while (this.#busy > 0) await sleep(PACE_MS)
    for (const { clients } of this.#trading)
      for (const client of clients.get(this.#stack.file.base_url) ?? []) await client.orders.cancelAll()
    const differences = await differencesOf(this.#stack)
    this.#isPaused = false
    await sleep(AFTER_MS)
    return differences
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#loops)
    for (const { clients } of this.#trading)
      for (const pair of clients.values()) for (const one of pair) one.close()
    await this.#second.stop()
  }

  #targets(): readonly Target[] {
    const { engine, standby, keeper, indexer, api, backstop, issuer, postgres, chain, file } = this.#stack
    const { baseUrl, ...second } = this.#second
    if (standby === null) throw new Error('a freeze of the engine needs a standby')
    const twins = [
      engine,
      standby,
      keeper,
      indexer,
      second.keeper,
      second.indexer,
      issuer,
      ...(backstop ? [backstop.process] : []),
    ]
    return [
      ...twins.map((process, index) => processTarget(process, `${process.name} ${index}`)),
      processTarget(api, 'api', file.base_url),
      processTarget(second.api, 'second api', baseUrl),
      { name: 'database', hasTwin: false, process: null, signal: (signal) => postgres.signal(signal) },
      { name: 'chain', hasTwin: false, process: null, signal: (signal) => chain.signal(signal) },
    ]
  }

  /** A pair that waits for a stopped process does not hold up the next one: another api accepts it. */
  async #trade(trading: Trading): Promise<void> {
    const pending = new Set<Promise<void>>()
    for (let round = 0; !this.#isOver; round++) {
      await sleep(PACE_MS)
      if (this.#isPaused) continue
      if (pending.size >= MOST_PENDING) await Promise.race(pending)
      const pair: Promise<void> = this.#attempt(trading, round).finally(() => pending.delete(pair))
      pending.add(pair)
    }
    await Promise.all(pending)
  }

  /** A rule of the exchange, or the result of a stopped process, rejects an order: the next one counts. */
  async #attempt(trading: Trading, round: number): Promise<void> {
    this.#busy++
    try {
      await this.#cross(trading, round)
    } catch (error) {
      if (!(error instanceof ClearbatchError)) throw error
      const refusal = `market ${trading.marketId} ${error.code}`
      this.#refusals[refusal] = (this.#refusals[refusal] ?? 0) + 1
    } finally {
      this.#busy--
    }
  }

  /** The accounts take turns, so that their positions stay small; each turn is longer than the life of an order that is left over. */
  async #cross({ marketId, clients, acceptedAt }: Trading, round: number): Promise<void> {
    const urls = [...clients.keys()].filter((url) => url !== this.#stopped?.baseUrl)
    const [first, second] = clients.get(urls[round % urls.length] as string) as readonly [Client, Client]
    const price = await nearOracle(first, marketId)
    const isFirstBuying = round % (2 * TURN_ROUNDS) < TURN_ROUNDS
    const [buyer, seller] = isFirstBuying ? [first, second] : [second, first]
    const expiration = Math.floor(Date.now() / 1000) + LIFE_SECONDS
    const terms = { marketId, price, quantity: quantityAt(price), leverage: 2, expiration } as const
    await Promise.all([
      buyer.orders.place({ ...terms, side: 'LONG' }),
      seller.orders.place({ ...terms, side: 'SHORT' }),
    ])
    acceptedAt.push(Date.now())
  }

  async #batchesOf(marketId: number, from: number): Promise<readonly number[]> {
    const rows = await this.#stack.db
      .selectFrom('batches')
      .select('created_at')
      .where('market_id', '=', marketId)
      .where('created_at', '>', from)
      .orderBy('created_at')
      .execute()
    return rows.map(({ created_at }) => created_at)
  }

  #client(baseUrl: string, index: number): Client {
    const account = this.#stack.file.accounts[index]
    if (account === undefined) throw new Error(`the stack has no account ${index}`)
    return new Client({
      baseUrl,
      rpcUrl: this.#stack.file.rpc_url,
      apiKey: account.api_key,
      privateKey: account.private_key,
      http: { budgetMs: ORDER_BUDGET_MS },
      // An account has a client for each api: each needs salts of its own.
      salts: saltSequence(BigInt(Date.now() + SALT_RANGE_MS * this.#clients++) << 10n),
    })
  }
}

const processTarget = (process: Managed, name: string, baseUrl?: string): Target => ({
  name,
  hasTwin: true,
  process,
  ...(baseUrl === undefined ? {} : { baseUrl }),
  signal(signal) {
    const pid = process.pid()
    if (pid === null) throw new Error(`${name} does not run`)
    globalThis.process.kill(pid, signal)
  },
})

/** Seconds that a member of the engine is behind the journal; null if it does not answer. */
async function lagOf({ url }: Managed): Promise<number | null> {
  const text = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(2_000) }).then(
    (response) => response.text(),
    () => '',
  )
  const lag = /^engine_follower_lag_seconds (\S+)$/m.exec(text)?.[1]
  return lag === undefined ? null : Number(lag)
}

/** The longest time without one of `times`, from the start to the end. */
function longestPause(times: readonly number[], from: number, until: number): number {
  const within = times.filter((time) => time >= from && time <= until)
  const bounds = [from, ...within, until]
  return Math.max(...bounds.slice(1).map((time, index) => time - (bounds[index] as number)))
}

const longestOf = <Pause extends { readonly ms: number }>(pauses: readonly Pause[]): Pause =>
  pauses.reduce((most, pause) => (pause.ms > most.ms ? pause : most))

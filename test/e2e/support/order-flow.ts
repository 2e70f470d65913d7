/** A steady flow of commands: pairs of orders that cross, and resting orders of which each is cancelled. Every acknowledgement is noted. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { Client } from '../../../client/client.ts'
import { ClearbatchError } from '../../../client/errors.ts'
import type { NewOrder } from '../../../client/order-factory.ts'
import type { PlacedOrder } from '../../../client/responses.ts'
import type { Stack } from '../../../stack/stack.ts'
import type { BalancedApis } from './balanced-apis.ts'
import { nearOracle } from './stack.ts'

const PAUSE_MS = 150
const MARKET = 1
const QUANTITY = '0.01'
/** Pairs between two changes of sides, so that positions stay small. */
const TURN_PAIRS = 8
/** Ticks below the oracle price: such an order rests. */
const RESTING_TICKS = -200
const LIFE_S = 600
/** Longer than any pause of a handover with its retries. */
const BUDGET_MS = 60_000

type State = 'acknowledged' | 'cancelled'

export class OrderFlow {
  readonly #stack: Stack
  readonly #clients: readonly Client[]
  readonly #states = new Map<string, State>()
  readonly #stopping = new AbortController()
  readonly #loops: readonly Promise<void>[]
  readonly failures: string[] = []
  /** Label of the program that builds the next orders; null: none. */
  builder: string | null = null

  constructor(stack: Stack, apis: BalancedApis) {
    this.#stack = stack
    this.#clients = stack.file.accounts.slice(0, 4).map(
      (account) =>
        new Client({
          baseUrl: stack.file.base_url,
          rpcUrl: stack.file.rpc_url,
          apiKey: account.api_key,
          privateKey: account.private_key,
          http: { budgetMs: BUDGET_MS, timeoutMs: BUDGET_MS, fetch: apis.fetch },
        }),
    )
    this.#loops = [this.#cross(), this.#rest(2), this.#rest(3)]
  }

  get acknowledged(): number {
    return this.#states.size
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all(this.#loops)
    for (const client of this.#clients) await client.orders.cancelAll()
    for (const client of this.#clients) client.close()
  }

  /** One line for each acknowledged command that is missing, and each order that is stored twice or was not acknowledged. */
  async differences(): Promise<readonly string[]> {
    const { rows } = await sql<{ hash: string; status: string; count: number }>`
      select hash, min(status) as status, count(*)::int as count from orders group by hash
    `.execute(this.#stack.db)
    const stored = new Map(rows.map((row) => [row.hash, row]))
    const lines = [...this.#states].flatMap(([hash, state]) => {
      const found = stored.get(hash)
      if (found === undefined) return [`${hash} is ${state} and not stored`]
      if (found.count !== 1) return [`${hash} is stored ${found.count} times`]
      const isWrong = state === 'cancelled' && found.status !== 'CANCELLED'
      return isWrong ? [`${hash} is cancelled and ${found.status}`] : []
    })
    const unknown = rows.filter(({ hash }) => !this.#states.has(hash))
    return [...lines, ...unknown.map(({ hash, status }) => `${hash} is ${status} and was not acknowledged`)]
  }

  async #each(work: (round: number) => Promise<void>): Promise<void> {
    for (let round = 0; !this.#stopping.signal.aborted; round++) {
      await work(round).catch((error: unknown) => this.failures.push(wordsOf(error)))
      await sleep(PAUSE_MS)
    }
  }

  #cross(): Promise<void> {
    return this.#each(async (round) => {
      const [first, second] = this.#clients as [Client, Client]
      const price = await nearOracle(first, MARKET)
      const isFirstBuying = round % (2 * TURN_PAIRS) < TURN_PAIRS
      const [buyer, seller] = isFirstBuying ? [first, second] : [second, first]
      const terms = { marketId: MARKET, price, quantity: QUANTITY, leverage: 2, expiresInSeconds: LIFE_S }
      await Promise.all([
        this.#place(buyer, { ...terms, side: 'LONG' }),
        this.#place(seller, { ...terms, side: 'SHORT' }),
      ])
    })
  }

  #rest(index: number): Promise<void> {
    const client = this.#clients[index] as Client
    return this.#each(async () => {
      const price = await nearOracle(client, MARKET, RESTING_TICKS)
      const terms = { marketId: MARKET, price, quantity: QUANTITY, leverage: 2, expiresInSeconds: LIFE_S }
      const { order_hash: hash } = await this.#place(client, { ...terms, side: 'LONG' })
      const { order } = await client.orders.cancel(hash)
      // An order that has matched ends as filled.
      if (order.status === 'CANCELLED') this.#states.set(hash, 'cancelled')
    })
  }

  async #place(client: Client, order: NewOrder): Promise<PlacedOrder> {
    const built = this.builder === null ? order : { ...order, builder: this.builder }
    const { order: placed } = await client.orders.place(built)
    this.#states.set(placed.order_hash, 'acknowledged')
    return placed
  }
}

const wordsOf = (error: unknown): string =>
  error instanceof ClearbatchError ? `${error.code} (${error.outcome}): ${error.message}` : String(error)

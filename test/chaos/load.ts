/**
 * Continuous trading on an exchange under faults: pairs of orders that cross on every market, so that each auction has a batch; a flow of
 * random or recorded orders and cancels; and copies that follow the live feed on connections that end.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Flow } from '../../bench/mix/flow.ts'
import { Client } from '../../client/client.ts'
import { fromE18 } from '../../client/decimals.ts'
import { ClearbatchError } from '../../client/errors.ts'
import type { NewOrder } from '../../client/order-factory.ts'
import type { Placement } from '../../client/responses.ts'
import { saltSequence } from '../../client/salts.ts'
import { FeedCopies } from '../../stack/audit/feed-copies.ts'
import { type Switch, startSwitch } from '../support/proxy.ts'
import { Commands, HTTP } from './commands.ts'
import type { Audited } from './exchange.ts'
import { FLOW_ACCOUNTS, orderOf } from './flows.ts'

/** Between two pairs of one market, and between two ends of connections of the feed. */
const PAIR_MS = 250
const FEED_END_MS = 1_000
/**
 * An order whose partner was refused must not rest for long: once its account takes its turn on the other side, its next order would end as a
 * trade of the account with itself.
 */
const LIFE_S = 2
/** Pairs between two changes of sides: four seconds, longer than the life of an order. */
const TURN_PAIRS = 16
/** Pairs of one market that wait for an answer: more than are sent while a service is stopped. */
const MOST_PENDING = 40
const FEED_MARKETS = [1, 3]
const FEED_ACCOUNTS = [0, 4, FLOW_ACCOUNTS.first, FLOW_ACCOUNTS.first + 1]
/** A sequence of salts starts at the time in milliseconds, times 1,024: room for more orders than a client sends. */
const SALT_RANGE_MS = 1_000_000

/** So that the positions of a turn need little margin, for example 25,000 USDM at a price of 63,000. */
const quantityAt = (price: string): string => (Number(price) > 10_000 ? '0.05' : '1')

export class Load {
  readonly commands = new Commands()
  /** By market, when an order was accepted, by the monotonic clock. */
  readonly acceptedAt = new Map<number, number[]>()
  readonly #exchange: Audited
  readonly #apis: readonly string[]
  readonly #switch: Switch
  readonly #copies: FeedCopies
  readonly #clients = new Map<string, Client>()
  readonly #pending = new Set<Promise<void>>()
  #failing: readonly string[] = []
  #stopping = new AbortController()
  #loops: readonly Promise<void>[] = []
  #next = 0

  private constructor(exchange: Audited, apis: readonly string[], parts: { readonly feed: Switch }) {
    this.#exchange = exchange
    this.#apis = apis
    this.#switch = parts.feed
    const accounts = FEED_ACCOUNTS.flatMap((index) => exchange.file.accounts[index] ?? [])
    const { base_url: baseUrl } = exchange.file
    this.#copies = new FeedCopies({ baseUrl, feedUrl: parts.feed.url, marketIds: FEED_MARKETS, accounts })
  }

  /** `choose`: of the api for each connection of the feed. */
  static async start(
    exchange: Audited,
    apis: readonly string[],
    choose: (end: number) => number,
  ): Promise<Load> {
    const feed = await startSwitch(apis, () => choose(apis.length))
    const load = new Load(exchange, apis, { feed })
    await load.#copies.untilCurrent()
    return load
  }

  get resumes(): number {
    return this.#copies.resumes
  }

  begin(flow: Flow): void {
    this.#stopping = new AbortController()
    this.#loops = [
      ...this.#exchange.specs.map(({ marketId }, index) => this.#pair(marketId, 2 * index)),
      this.#flow(flow),
      this.#interrupt(),
    ]
  }

  /** Pairs go to the other apis, as a balancer with health checks sends them. */
  avoid(apis: readonly string[]): void {
    this.#failing = apis
  }

  /** Resolves once every client has its answer, and no order is live. */
  async end(): Promise<void> {
    this.#stopping.abort()
    await Promise.all(this.#loops)
    await Promise.all(this.#pending)
    for (const index of this.#exchange.file.accounts.keys())
      await this.#client(index, this.#apis[0] as string).orders.cancelAll()
  }

  abort(): void {
    this.#stopping.abort()
  }

  async feedDifferences(): Promise<readonly string[]> {
    await this.#copies.untilCurrent()
    return this.#copies.differences()
  }

  async close(): Promise<void> {
    this.abort()
    this.#copies.close()
    for (const client of this.#clients.values()) client.close()
    await this.#switch.close()
  }

  get #isOver(): boolean {
    return this.#stopping.signal.aborted
  }

  /** An account has a client for each api, with salts of its own. */
  #client(index: number, baseUrl: string): Client {
    const name = `${index} ${baseUrl}`
    const existing = this.#clients.get(name)
    if (existing !== undefined) return existing
    const account = this.#exchange.file.accounts[index]
    if (account === undefined) throw new Error(`the exchange has no account ${index}`)
    const created = new Client({
      baseUrl,
      apiKey: account.api_key,
      privateKey: account.private_key,
      http: HTTP,
      salts: saltSequence(BigInt(Date.now() + SALT_RANGE_MS * this.#clients.size) << 10n),
    })
    this.#clients.set(name, created)
    return created
  }

  /** A request that waits for a stopped process does not hold up the next one. */
  #start(work: () => Promise<void>): void {
    const started: Promise<void> = work().finally(() => this.#pending.delete(started))
    this.#pending.add(started)
  }

  async #pair(marketId: number, account: number): Promise<void> {
    for (let round = 0; !this.#isOver; round++) {
      await sleep(PAIR_MS)
      if (this.#pending.size < MOST_PENDING * this.#exchange.specs.length)
        this.#start(() => this.#cross(marketId, account, round))
    }
  }

  /** The accounts take turns, so that their positions stay small. */
  async #cross(marketId: number, account: number, round: number): Promise<void> {
    const apis = this.#apis.filter((api) => !this.#failing.includes(api))
    const api = apis[this.#next++ % apis.length] as string
    const [first, second] = [this.#client(account, api), this.#client(account + 1, api)]
    const market = await this.commands.wait('the market', () => first.marketData.market(marketId))
    if (market instanceof ClearbatchError || market.oracle_price_e18_raw === null) return
    const tick = BigInt(market.tick_size_e18_raw)
    const price = fromE18((BigInt(market.oracle_price_e18_raw) / tick) * tick)
    const isFirstBuying = round % (2 * TURN_PAIRS) < TURN_PAIRS
    const [buyer, seller] = isFirstBuying ? [first, second] : [second, first]
    const terms = { marketId, price, quantity: quantityAt(price), leverage: 2, expiresInSeconds: LIFE_S }
    const placed = await Promise.all([
      this.#place(buyer, { ...terms, side: 'LONG' }),
      this.#place(seller, { ...terms, side: 'SHORT' }),
    ])
    if (placed.includes(null)) return
    this.acceptedAt.set(marketId, [...(this.acceptedAt.get(marketId) ?? []), performance.now()])
  }

  async #place(client: Client, order: NewOrder): Promise<Placement | null> {
    const signed = await this.commands.wait('the terms of an order', () => client.orders.sign(order))
    if (signed instanceof ClearbatchError) return null
    return this.commands.send('place', signed.hash, () => client.orders.send(signed))
  }

  /** At the planned times, whatever earlier answers are. A failing api gets its share. */
  async #flow({ orders, cancels }: Flow): Promise<void> {
    const placed = new Map<
      number,
      Promise<{ readonly client: Client; readonly placement: Placement | null }>
    >()
    const actions = [
      ...orders.map((order, index) => ({ at: order.at, work: () => void placed.set(index, place(index)) })),
      ...cancels.map(({ at, order }) => ({ at, work: () => this.#start(() => cancel(order)) })),
    ].sort((a, b) => a.at - b.at)

    const place = (index: number) => {
      const planned = orders[index] as Flow['orders'][number]
      const client = this.#client(
        FLOW_ACCOUNTS.first + planned.account,
        this.#apis[index % this.#apis.length] as string,
      )
      const placing = this.#place(client, orderOf(planned, this.#exchange.specs))
      this.#start(async () => void (await placing))
      return placing.then((placement) => ({ client, placement }))
    }
    const cancel = async (index: number): Promise<void> => {
      const { client, placement } = (await placed.get(index)) ?? {}
      if (client === undefined || placement === null || placement === undefined) return
      const { order_hash: hash } = placement.order
      await this.commands.send('cancel', hash, () => client.orders.cancel(hash))
    }

    const start = performance.now()
    for (const { at, work } of actions) {
      while (!this.#isOver && performance.now() - start < at)
        await sleep(Math.max(1, Math.min(PAIR_MS, at - (performance.now() - start))))
      if (this.#isOver) return
      work()
    }
  }

  async #interrupt(): Promise<void> {
    while (!this.#isOver) {
      await sleep(FEED_END_MS)
      this.#copies.interrupt(this.#next % this.#copies.size)
    }
  }
}

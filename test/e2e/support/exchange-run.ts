/** Plays rounds of commands on a running exchange over HTTP. After each round it compares journal and reads with the model. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '../../../client/client.ts'
import type { Market } from '../../../client/responses.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { isMarketType } from '../../../domain/orders/order.ts'
import type { Address } from '../../../domain/units.ts'
import { settled } from '../../../stack/audit/audit.ts'
import type { Stack } from '../../../stack/stack.ts'
import { checkAccount, checkBook, checkMarket, checkOrders, type TraderState } from './checks.ts'
import { CommandExecutor } from './command-executor.ts'
import { LEVERAGED, type Place, PROBER, type Round, TRADERS } from './commands.ts'
import { Crashes } from './crashes.ts'
import { FaultInjector } from './fault-injector.ts'
import { type Ending, MARKETS } from './faults.ts'
import { History } from './history.ts'
import { MarketEnd } from './market-end.ts'
import { MarketRecord } from './market-record.ts'
import { overdue } from './overdue.ts'
import { Prices } from './prices.ts'
import { SingleActions } from './single-actions.ts'
import { readAccount, setUpTrader, type TraderSetup } from './trader-setup.ts'
import { TransactionRecorder } from './transaction-recorder.ts'
import { UnseenChain } from './unseen-chain.ts'

/** Time limit for all due changes after a round: longer than a keeper's lease, a late part and its resending together. */
const SETTLE_LIMIT_MS = 90_000

interface RunParts {
  readonly stack: Stack
  readonly setups: readonly TraderSetup[]
  readonly specs: readonly MarketSpec[]
  readonly prices: Prices
  readonly recorder: TransactionRecorder
  readonly queue: SingleActions
  readonly unseen: UnseenChain
  readonly injector: FaultInjector
  readonly counts: Record<string, number>
  readonly markets: readonly MarketRecord[]
  /** By account. */
  readonly free: ReadonlyMap<number, bigint>
  readonly addresses: ReadonlyMap<number, Address>
}

export class ExchangeRun {
  readonly counts: Record<string, number>
  readonly #stack: Stack
  readonly #setups: readonly TraderSetup[]
  readonly #specs: readonly MarketSpec[]
  readonly #prices: Prices
  readonly #executor: CommandExecutor
  /** The client of the extra trader, who probes the batches and reads public data. */
  readonly #reader: Client
  readonly #recorder: TransactionRecorder
  readonly #queue: SingleActions
  readonly #unseen: UnseenChain
  readonly #injector: FaultInjector
  readonly #history: History
  readonly #crashes: Crashes
  readonly #ends = new Set<string>()
  #problems: string[] = []
  #rounds = 0

  private constructor({ stack, setups, specs, prices, recorder, markets, free, ...parts }: RunParts) {
    this.counts = parts.counts
    const count = counterOf(this.counts)
    const notes = new Map(setups.map(({ notes }) => [notes.account, notes]))
    this.#stack = stack
    this.#setups = setups
    this.#specs = specs
    this.#prices = prices
    this.#recorder = recorder
    this.#queue = parts.queue
    this.#unseen = parts.unseen
    this.#injector = parts.injector
    const { addresses, injector } = parts
    this.#history = new History({ markets, free, addresses, notes, prices, count })
    this.#reader = clientOf(setups[PROBER])
    this.#crashes = new Crashes({
      ...{ stack, injector, prices, reader: this.#reader, count },
      catchUp: () => this.#catchUp(),
    })
    const keepBlocks = this.#injector.keepBlocks.bind(this.#injector)
    this.#executor = new CommandExecutor({ stack, setups, specs, prices, keepBlocks, count })
  }

  /** Sets up the first accounts of the stack as traders, one more that probes the batches, and one with little margin. They use the given apis in turn. */
  static async start(stack: Stack, apis: readonly string[]): Promise<ExchangeRun> {
    // It would close what it inherits with orders that no trader of the run has sent.
    await stack.backstop?.process.stop()
    const setups: TraderSetup[] = []
    for (let at = 0; at <= LEVERAGED; at++)
      setups.push(await setUpTrader(stack, at, apis[at % apis.length] ?? ''))
    const specs = stack.specs.filter(({ marketId }) => (MARKETS as readonly number[]).includes(marketId))
    const prices = await Prices.open(stack, specs, clientOf(setups[PROBER]))
    // After a price that only this run publishes is visible, no earlier price of the simulated oracle can follow.
    await prices.publish(
      specs.map(() => 1),
      clientOf(setups[PROBER]),
    )
    const recorder = await TransactionRecorder.install(stack.db)
    const accounts = await stack.db.selectFrom('read.balances').select(['user_id', 'free']).execute()
    const markets = specs.map((spec) => new MarketRecord(spec))
    const free = new Map(accounts.map(({ user_id, free }) => [user_id, free]))
    const unseen = await UnseenChain.install(stack.db)
    const counts: Record<string, number> = {}
    const traders = setups.slice(0, TRADERS).map(({ notes }) => notes.address.toLowerCase() as Address)
    const queue = await SingleActions.install(stack)
    const injector = await FaultInjector.start({ stack, queue, traders, count: counterOf(counts) })
    const users = await stack.db.selectFrom('users').select(['user_id', 'address']).execute()
    const addresses = new Map(users.map(({ user_id, address }) => [user_id, address as Address]))
    const parts = { stack, setups, specs, prices, recorder, queue, unseen, injector, counts }
    return new ExchangeRun({ ...parts, markets, free, addresses })
  }

  async close(): Promise<void> {
    for (const { clients } of this.#setups) for (const client of clients) client.close()
    await this.#prices.close()
    await this.#injector.close()
  }

  /** Plays one round, waits until no change is due, and returns one line per difference from the model. */
  async playRound({ crashes, prices, commands, faults }: Round): Promise<readonly string[]> {
    await this.#injector.beginRound()
    const executor = this.#executor
    const place = async (by: number, order: Place) => executor.send(await executor.sign(by, order))
    for (const crash of crashes) await this.#crashes.play(crash, place)
    await this.#prices.publish(prices, this.#reader)
    await this.#crashes.untilOver()
    const injected = this.#injector.inject(faults, place)
    const problems = await Promise.all(commands.map((list, by) => this.#executor.execute(by, list)))
    await injected
    const { traders, late } = await this.#untilNothingDue()
    const history = this.#history
    const violations = [
      ...this.#problems.splice(0),
      ...traders.flatMap((trader) => [
        ...checkOrders(trader, history),
        ...checkAccount(trader, this.#specs, history),
      ]),
      ...this.#specs.flatMap((spec) => checkMarket(spec, traders, history)),
      ...(await this.#checkBooks(history)),
      ...(await this.#checkModes()),
    ]
    history.endRound()
    this.#countEnds(traders)
    return [...problems.flat(), ...late, ...violations]
  }

  /** One market ends; no round can follow. Returns one line per difference from the rules. */
  async endMarket(ending: Ending): Promise<readonly string[]> {
    await this.#injector.beginRound()
    const spec = this.#specs.find(({ marketId }) => marketId === ending.market) as MarketSpec
    const clients = this.#setups.map(({ clients }) => clients[0] as Client)
    const parts = { stack: this.#stack, injector: this.#injector, queue: this.#queue, spec, clients }
    return new MarketEnd(parts).play(ending)
  }

  /** No fault of a round may close a market. */
  async #checkModes(): Promise<string[]> {
    const markets = await this.#stack.db.selectFrom('markets').select(['market_id', 'mode']).execute()
    return markets.flatMap(({ market_id, mode }) =>
      mode === 'open' ? [] : [`market ${market_id} is ${mode}`],
    )
  }

  // ---------------------------------------------------------------------- until nothing is due

  /** Sends a market order to each market. Once it has ended, an auction has processed every earlier order. */
  async #probe(round: number): Promise<void> {
    const client = this.#reader
    for (const { marketId } of this.#specs) {
      for (;;) {
        const side = round % 2 === 0 ? 'LONG' : 'SHORT'
        const common = { kind: 'place', market: marketId, side, type: 'MARKET', units: 1 } as const
        const place = {
          ...common,
          limit: 0,
          trigger: 0,
          leverage: 2,
          reduceOnly: false,
          life: 0,
          key: null,
        } as Place
        const sentOrder = await this.#executor.sign(PROBER, place)
        const placed = await this.#executor.send(sentOrder)
        if (placed === null) throw new Error('the probe order was rejected')
        const ended = await client.orders.waitFor(
          placed,
          ({ status_reason }) => status_reason !== null,
          SETTLE_LIMIT_MS,
        )
        if (ended.status_reason !== 'NO_BATCH_IN_TIME' && ended.status_reason !== 'SETTLEMENT_REVERTED') break
      }
    }
  }

  /** The reads of all accounts once no change is due, or the changes that are still due at the time limit. */
  async #untilNothingDue(): Promise<{ traders: readonly TraderState[]; late: readonly string[] }> {
    const { db, api, engine, keeper, indexer } = this.#stack
    await Promise.all([api.ready(), engine.ready(), keeper.ready(), indexer.ready()])
    await this.#probe(this.#rounds++)
    const deadline = Date.now() + SETTLE_LIMIT_MS
    for (;;) {
      await settled(db, SETTLE_LIMIT_MS)
      const markets = await this.#markets()
      const ordersDigest = await this.#ordersDigest()
      const traders = await Promise.all(this.#setups.map(readAccount))
      await this.#catchUp()
      const now = Date.now()
      const due = [...overdue(traders, markets, now), ...this.#history.overdue(now)]
      const isDueSoon =
        this.#setups.some(({ notes }) => notes.isArmed(Date.now())) || this.#expiresSoon(traders)
      await sleep(250)
      const isUnchanged = ordersDigest === (await this.#ordersDigest())
      if (due.length === 0 && !isDueSoon && isUnchanged) return { traders, late: [] }
      if (Date.now() > deadline)
        return { traders, late: due.map((change) => `still due after ${SETTLE_LIMIT_MS} ms: ${change}`) }
    }
  }

  async #catchUp(): Promise<void> {
    const attempts = this.#setups.flatMap(({ notes }) => notes.drainAttempts())
    const observations = this.#setups.flatMap(({ notes }) => notes.drainObservations())
    const transactions = await this.#recorder.nextTransactions(this.#queue)
    const unseen = await this.#unseen.times()
    const funding = await this.#queue.fundingIndexes()
    const { indexes } = this.#queue
    this.#problems.push(
      ...this.#history.apply(transactions, { attempts, observations, unseen, funding, indexes }),
    )
  }

  #expiresSoon(traders: readonly TraderState[]): boolean {
    return traders.some(({ reads }) =>
      reads.orders.some(
        ({ status, expiration_seconds: at, order_type }) =>
          (status === 'OPEN' || status === 'PENDING_TRIGGER') &&
          at > 0 &&
          !isMarketType(order_type) &&
          at * 1000 < Date.now() + 3_000,
      ),
    )
  }

  async #markets(): Promise<Map<number, Market>> {
    const markets = await Promise.all(
      this.#specs.map(({ marketId }) => this.#reader.marketData.market(marketId)),
    )
    return new Map(markets.map((market) => [market.market_id, market]))
  }

  /** Changes with every write except prices. */
  async #ordersDigest(): Promise<string> {
    const { db } = this.#stack
    const rows = await db
      .selectFrom('orders')
      .select((select) => [
        'status',
        select.fn.countAll().as('count'),
        select.fn.sum('filled').as('filled'),
        select.fn.sum('seq').as('seq'),
      ])
      .groupBy('status')
      .orderBy('status')
      .execute()
    return rows.map(({ status, count, filled, seq }) => `${status} ${count} ${filled} ${seq}`).join()
  }

  async #checkBooks(history: History): Promise<string[]> {
    const problems: string[] = []
    for (const spec of this.#specs) {
      const { long_levels, short_levels } = await this.#reader.marketData.orderbook(spec.marketId, {
        depth: 1000,
      })
      const levels = [...long_levels, ...short_levels].map(
        ({ side, price_e18_raw, quantity_e18_raw, order_count }): [string, string] => [
          `${side} ${price_e18_raw}`,
          `${quantity_e18_raw} ${order_count}`,
        ],
      )
      problems.push(...checkBook(history, spec, new Map(levels)))
    }
    return problems
  }

  #count(name: string): void {
    counterOf(this.counts)(name)
  }

  #countEnds(traders: readonly TraderState[]): void {
    for (const { order_id, status_reason, trigger } of traders.flatMap(({ reads }) => reads.orders)) {
      if (status_reason === null || this.#ends.has(order_id)) continue
      this.#ends.add(order_id)
      this.#count(status_reason)
      if (trigger !== null) this.#count('triggered')
    }
  }
}

const counterOf =
  (counts: Record<string, number>) =>
  (name: string): void => {
    counts[name] = (counts[name] ?? 0) + 1
  }

function clientOf(setup: TraderSetup | undefined): Client {
  const client = setup?.clients[0]
  if (client === undefined) throw new RangeError('the run has no such trader')
  return client
}

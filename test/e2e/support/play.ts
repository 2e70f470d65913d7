/** Plays rounds of commands on a running exchange over HTTP, and compares what it tells with what the traders know once it is quiet. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '../../../client/client.ts'
import type { Market } from '../../../client/responses.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { isMarketType } from '../../../domain/orders/order.ts'
import { settled } from '../../../stack/audit/audit.ts'
import type { Stack } from '../../../stack/stack.ts'
import { type Fault, MARKETS, type Place, type Round, TRADERS } from './commands.ts'
import { type Desk, openDesk, toldTo } from './desks.ts'
import { dues } from './dues.ts'
import { History } from './history.ts'
import { accountLaws, bookLaw, marketLaws, orderLaws, type Trader } from './laws.ts'
import { MarketRecord } from './market-record.ts'
import { Prices } from './prices.ts'
import { Traders } from './traders.ts'
import { Witness } from './witness.ts'

/** How long a round may take to become quiet: a keeper's lease, a part that is too late, and being sent again fit in. */
const QUIET_MS = 90_000

interface Opening {
  readonly stack: Stack
  readonly desks: readonly Desk[]
  readonly specs: readonly MarketSpec[]
  readonly prices: Prices
  readonly witness: Witness
  readonly markets: readonly MarketRecord[]
  /** By account. */
  readonly free: ReadonlyMap<number, bigint>
}

export class Play {
  readonly counts: Record<string, number> = {}
  readonly #stack: Stack
  readonly #desks: readonly Desk[]
  readonly #specs: readonly MarketSpec[]
  readonly #prices: Prices
  readonly #traders: Traders
  /** Who looks after the batches, and reads what everybody may. */
  readonly #reader: Client
  readonly #witness: Witness
  readonly #history: History
  readonly #ends = new Set<string>()
  #wrong: string[] = []
  #rounds = 0

  private constructor({ stack, desks, specs, prices, witness, markets, free }: Opening) {
    const count = (name: string) => this.#count(name)
    const papers = new Map(desks.map(({ paper }) => [paper.account, paper]))
    this.#stack = stack
    this.#desks = desks
    this.#specs = specs
    this.#prices = prices
    this.#witness = witness
    this.#history = new History({ markets, free, papers, prices, count })
    this.#traders = new Traders({ stack, desks, specs, prices, count })
    this.#reader = clientOf(desks[TRADERS])
  }

  /** Its traders are the first accounts of the stack; one more looks after the batches. Each goes to one of the apis, in turn. */
  static async open(stack: Stack, apis: readonly string[]): Promise<Play> {
    const desks: Desk[] = []
    for (let at = 0; at <= TRADERS; at++) desks.push(await openDesk(stack, at, apis[at % apis.length] ?? ''))
    const specs = stack.specs.filter(({ marketId }) => (MARKETS as readonly number[]).includes(marketId))
    const prices = await Prices.open(stack, specs, clientOf(desks[TRADERS]))
    // Once a price is heard that was not said before, what others said is not heard of any more.
    await prices.move(
      specs.map(() => 1),
      clientOf(desks[TRADERS]),
    )
    const witness = await Witness.stand(stack.db)
    const accounts = await stack.db.selectFrom('accounts').select(['user_id', 'free']).execute()
    const markets = specs.map((spec) => new MarketRecord(spec))
    const free = new Map(accounts.map(({ user_id, free }) => [user_id, free]))
    return new Play({ stack, desks, specs, prices, witness, markets, free })
  }

  async close(): Promise<void> {
    for (const { clients } of this.#desks) for (const client of clients) client.close()
    await this.#prices.close()
  }

  /** Everything that was not as it must be, in this round and until it was quiet again. */
  async round({ prices, commands, fault }: Round): Promise<readonly string[]> {
    await this.#prices.move(prices, this.#reader)
    const faulty = fault === null ? Promise.resolve() : this.#fault(fault)
    const wrong = await Promise.all(commands.map((list, by) => this.#traders.act(by, list)))
    await faulty
    const { traders, late } = await this.#quiet()
    const history = this.#history
    const laws = [
      ...this.#wrong.splice(0),
      ...traders.flatMap((trader) => [
        ...orderLaws(trader, history),
        ...accountLaws(trader, this.#specs, history),
      ]),
      ...this.#specs.flatMap((spec) => marketLaws(spec, traders)),
      ...(await this.#bookLaws(traders)),
    ]
    this.#countEnds(traders)
    return [...wrong.flat(), ...late, ...laws]
  }

  #count(name: string): void {
    this.counts[name] = (this.counts[name] ?? 0) + 1
  }

  async #fault({ part, point, afterMs }: Fault): Promise<void> {
    await sleep(afterMs)
    this.#count(`${part} ${point ?? 'killed'}`)
    if (point === null) await this.#stack[part].restart('SIGKILL')
    else await this.#stack[part].restart('SIGTERM', { CLEARBATCH_KILL_AT: point })
  }

  // ---------------------------------------------------------------------- until it is quiet

  /** A market order in each market: once it has ended, a batch has looked at everything that was there before it. */
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
        const mine = await this.#traders.sign(TRADERS, place)
        const placed = await this.#traders.send(mine)
        if (placed === null) throw new Error('whoever looks after the batches is refused')
        const ended = await client.orders.waitFor(
          placed,
          ({ status_reason }) => status_reason !== null,
          QUIET_MS,
        )
        if (ended.status_reason !== 'NO_BATCH_IN_TIME' && ended.status_reason !== 'SETTLEMENT_REVERTED') break
      }
    }
  }

  /** All that is told at a moment when nothing is due any more, or what is due still after a long time. */
  async #quiet(): Promise<{ traders: readonly Trader[]; late: readonly string[] }> {
    const { db, api, keeper, indexer } = this.#stack
    await Promise.all([api.ready(), keeper.ready(), indexer.ready()])
    await this.#probe(this.#rounds++)
    const deadline = Date.now() + QUIET_MS
    for (;;) {
      await settled(db, QUIET_MS)
      const markets = await this.#markets()
      const heads = await this.#heads()
      const traders = await Promise.all(this.#desks.map(toldTo))
      await this.#catchUp()
      const now = Date.now()
      const due = [...dues(traders, markets, now), ...this.#history.due(now)]
      const isSoon = this.#desks.some(({ paper }) => paper.isArmed(Date.now())) || this.#expiresSoon(traders)
      await sleep(250)
      const isStill = heads === (await this.#heads())
      if (due.length === 0 && !isSoon && isStill) return { traders, late: [] }
      if (Date.now() > deadline)
        return { traders, late: due.map((what) => `still after ${QUIET_MS} ms: ${what}`) }
    }
  }

  async #catchUp(): Promise<void> {
    const attempts = this.#desks.flatMap(({ paper }) => paper.takeAttempts())
    const sightings = this.#desks.flatMap(({ paper }) => paper.takeSightings())
    this.#wrong.push(...this.#history.take(await this.#witness.next(), { attempts, sightings }))
  }

  #expiresSoon(traders: readonly Trader[]): boolean {
    return traders.some(({ told }) =>
      told.orders.some(
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

  /** What changes with everything but prices. */
  async #heads(): Promise<string> {
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

  async #bookLaws(traders: readonly Trader[]): Promise<string[]> {
    const wrong: string[] = []
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
      wrong.push(...bookLaw(spec, traders, new Map(levels)))
    }
    return wrong
  }

  #countEnds(traders: readonly Trader[]): void {
    for (const { order_id, status_reason, trigger } of traders.flatMap(({ told }) => told.orders)) {
      if (status_reason === null || this.#ends.has(order_id)) continue
      this.#ends.add(order_id)
      this.#count(status_reason)
      if (trigger !== null) this.#count('triggered')
    }
  }
}

function clientOf(desk: Desk | undefined): Client {
  const client = desk?.clients[0]
  if (client === undefined) throw new RangeError('there is no such trader')
  return client
}

/** A crash day through the oracle of a running exchange, over leveraged accounts: positions, prices, faults between them, and what holds. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '../../../client/client.ts'
import { fromE18 } from '../../../client/decimals.ts'
import { marketShard } from '../../../domain/journal/journal-row.ts'
import type { LiquidationChanged } from '../../../domain/journal/liquidation-row.ts'
import type { Price } from '../../../domain/units.ts'
import { type FeedOverride, overrideFeed } from '../../../stack/feed-override.ts'
import type { Stack } from '../../../stack/stack.ts'
import type { Managed } from '../../../stack/supervisor.ts'
import { replaceBlocks } from '../../support/chain-faults.ts'
import { waitFor } from '../../support/patience.ts'
import { differencesOf, isDone, traderOn } from './stack.ts'

/** The crypto perpetual and the numeric future. */
export const FALLING = [1, 3] as const
type FallingMarket = (typeof FALLING)[number]

/** First price and tick, wei. */
const START: Readonly<Record<FallingMarket, bigint>> = { 1: 63_000n * 10n ** 18n, 3: 850n * 10n ** 18n }
const TICK: Readonly<Record<FallingMarket, bigint>> = { 1: 10n ** 17n, 3: 5n * 10n ** 17n }

const WAIT = { budgetMs: 180_000 }
/** At least two auctions see each price. */
const PRICE_MS = 450
/** By how much one report may differ from the last one. */
const MOST_MOVED = 0.09

/**
 * A day on which a price falls by 30 %, in thousandths of its first price: a fall of 15 %, rallies of half of it, and a second fall. It has the
 * shape of recorded crashes, which have no licence that allows to keep them here. The first prices lie where the positions of the
 * crash day close: 974 by the book, 931 to the backstop, 942 and 890 without equity.
 */
export const CRASH_DAY: readonly number[] = [
  ...[1000, 974, 942, 931, 955, 924, 890, 852, 925, 915, 930, 945],
  ...[930, 885, 915, 885, 860, 815, 845, 815, 865, 855, 870, 880],
  ...[875, 920, 885, 880, 855, 885, 865, 865, 805, 810, 750, 700],
]

/** A position that the account opens against another one, at the first price. */
export interface Opening {
  readonly marketId: FallingMarket
  readonly account: number
  readonly against: number
  readonly quantity: string
  readonly leverage: number
}

export class CrashRun {
  readonly stack: Stack
  readonly #feeds = new Map<FallingMarket, FeedOverride>()
  readonly #clients = new Map<number, Client>()
  #thousandths = 1_000

  private constructor(stack: Stack) {
    this.stack = stack
  }

  /** The prices of both markets are their first ones. */
  static async open(stack: Stack): Promise<CrashRun> {
    // It would close what it inherits against the orders of the run.
    await stack.backstop?.process.stop()
    const run = new CrashRun(stack)
    await run.take()
    return run
  }

  /** The run publishes the prices, until `release`. */
  async take(): Promise<void> {
    for (const marketId of FALLING) this.#feeds.set(marketId, overrideFeed(this.stack, marketId))
    await this.#publish(this.#thousandths)
  }

  async release(): Promise<void> {
    for (const feed of this.#feeds.values()) await feed.release()
    this.#feeds.clear()
  }

  trader(account: number): Client {
    const client = this.#clients.get(account) ?? traderOn(this.stack, account, WAIT.budgetMs)
    this.#clients.set(account, client)
    return client
  }

  priceAt(marketId: FallingMarket, thousandths: number): bigint {
    const tick = TICK[marketId]
    return ((START[marketId] * BigInt(thousandths)) / 1_000n / tick) * tick
  }

  textAt = (marketId: FallingMarket, thousandths: number): string =>
    fromE18(this.priceAt(marketId, thousandths))

  /**
   * Publishes the price, by way of others if it is too far from the present one, waits until the exchange shows it, two auctions have seen
   * it, all `outcomes` have happened, and no action of a liquidation is to be mined.
   */
  async price(thousandths: number, outcomes: readonly (() => Promise<boolean>)[] = []): Promise<void> {
    const before = this.#thousandths
    const most = Math.floor(before * MOST_MOVED)
    if (Math.abs(thousandths - before) > most) {
      await this.price(before + Math.sign(thousandths - before) * most)
      return this.price(thousandths, outcomes)
    }
    await this.#publish(thousandths)
    // The contracts accept a move of a tenth within a second.
    await sleep(PRICE_MS + (Math.abs(thousandths - before) / before) * 10_000)
    for (const outcome of outcomes) await waitFor(outcome, (happened) => happened, WAIT)
    await waitFor(
      () => this.#acting(),
      (acting) => acting === 0,
      WAIT,
    )
  }

  async #publish(thousandths: number): Promise<void> {
    this.#thousandths = thousandths
    for (const [marketId, feed] of this.#feeds) feed.setPrice(this.priceAt(marketId, thousandths) as Price)
    for (const marketId of this.#feeds.keys()) {
      const price = this.priceAt(marketId, thousandths)
      await waitFor(
        () => this.trader(11).marketData.market(marketId),
        ({ oracle_price_e18_raw }) => BigInt(oracle_price_e18_raw ?? 0) === price,
        WAIT,
      )
    }
  }

  /** Opens a position at the present price; both orders fill. */
  async open({ marketId, account, against, quantity, leverage }: Opening): Promise<void> {
    const [buyer, seller] = [this.trader(account), this.trader(against)]
    const terms = { marketId, price: this.textAt(marketId, this.#thousandths), quantity } as const
    const buy = await buyer.orders.place({ ...terms, side: 'LONG', leverage })
    const sell = await seller.orders.place({ ...terms, side: 'SHORT', leverage: 2 })
    const ended = await Promise.all([
      buyer.orders.waitFor(buy, isDone, WAIT.budgetMs),
      seller.orders.waitFor(sell, isDone, WAIT.budgetMs),
    ])
    if (ended.some(({ status }) => status !== 'FILLED'))
      throw new Error(`account ${account} opens nothing: ${ended.map(({ status }) => status)}`)
  }

  /** A bid that rests. */
  async bid(account: number, thousandths: number, quantity: string): Promise<void> {
    const price = this.textAt(1, thousandths)
    await this.trader(account).orders.place({ marketId: 1, side: 'LONG', price, quantity, leverage: 2 })
  }

  /** Positions whose inheritance or deleveraging is in the queue. */
  async #acting(): Promise<number> {
    const rows = await this.stack.db
      .selectFrom('liquidations')
      .select('user_id')
      .where('stage', 'in', ['inheriting', 'deleveraging'])
      .execute()
      // The database may be restarting.
      .catch(() => [null])
    return rows.length
  }

  async running(): Promise<number> {
    return (await this.stack.db.selectFrom('liquidations').select('user_id').execute()).length
  }

  // ---------------------------------------------------------------------- faults

  /** The process ends when it next reaches the point, while `work` runs, and is ready again. */
  async killAt(process: Managed, point: string, work: () => Promise<unknown>): Promise<void> {
    await process.restart('SIGTERM', { CLEARBATCH_KILL_AT: point })
    const died = process.nextEnd()
    await process.ready()
    await work()
    await died
    await process.ready()
  }

  /** The prices are the simulated ones meanwhile, which continue from the last one. */
  async restartDatabase(): Promise<void> {
    await this.release()
    await this.stack.postgres.restart()
    for (const process of [this.stack.indexer, this.stack.keeper, this.stack.api]) await process.ready()
    await this.take()
  }

  fork(depth: number): Promise<void> {
    return replaceBlocks(this.stack.provider, depth)
  }

  /** Resolves when the exchange has read the chain up to its present end. */
  async hasReadChain(): Promise<void> {
    const { provider, db } = this.stack
    const end = await provider.getBlockNumber()
    // Blocks without logs are not stored.
    const stored = db.selectFrom('chain_blocks').select(['number', 'hash']).orderBy('number', 'desc').limit(1)
    const isRead = async (): Promise<boolean> => {
      const block = await stored.executeTakeFirst()
      if (block === undefined || Number(block.number) < end) return false
      return (await provider.getBlock(Number(block.number)))?.hash === block.hash
    }
    await waitFor(isRead, (read) => read, WAIT)
  }

  // ---------------------------------------------------------------------- what holds

  /** The steps of all liquidations of the market, in their order. */
  async steps(marketId: FallingMarket): Promise<LiquidationChanged[]> {
    const rows = await this.stack.db
      .selectFrom('journal')
      .select('row')
      .where('shard', '=', marketShard(marketId))
      .orderBy('seq')
      .execute()
    return rows.flatMap(({ row }) => (row.kind === 'liquidation_changed' ? [row] : []))
  }

  userId(account: number): number {
    return this.stack.file.accounts[account]?.user_id as number
  }

  /** How parts of positions left them, as the public reads it. */
  async kinds(marketId: FallingMarket): Promise<Set<string>> {
    const { liquidations } = await this.trader(11).marketData.liquidationPage({ marketId, limit: 1_000 })
    return new Set(liquidations.map(({ kind }) => kind))
  }

  /** One line for each difference between chain, journal, write side, read model and REST, and for each law that does not hold. */
  async problems(): Promise<string[]> {
    const { db } = this.stack
    const differences = await waitFor(
      () => differencesOf(this.stack),
      (found) => found.length === 0,
      WAIT,
    ).catch(() => differencesOf(this.stack))
    const mismatches = await db.selectFrom('settlement_mismatches').selectAll().execute()
    const sums = await db
      .selectFrom('read.positions')
      .select(['market_id', ({ fn }) => fn.sum<string>('size').as('size')])
      .groupBy('market_id')
      .execute()
    const restricted = await db
      .selectFrom('markets')
      .select('market_id')
      .where('mode', '=', 'cancel_only')
      .execute()
    const twice = await db
      .selectFrom('orders')
      .select('user_id')
      .where('forced', '=', true)
      .where('ended_at', 'is', null)
      .groupBy(['market_id', 'user_id'])
      .having(({ fn }) => fn.countAll(), '>', 1)
      .execute()
    return [
      ...differences,
      ...mismatches.map(({ failure_reason }) => `mismatch: ${failure_reason}`),
      ...sums.flatMap(({ market_id, size }) =>
        Number(size) === 0 ? [] : [`the positions of market ${market_id} sum to ${size} steps`],
      ),
      ...restricted.map(({ market_id }) => `market ${market_id} is restricted to cancels`),
      ...twice.map(({ user_id }) => `account ${user_id} has two forced orders`),
    ]
  }

  close(): void {
    for (const client of this.#clients.values()) client.close()
  }
}

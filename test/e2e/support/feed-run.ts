/**
 * Copies that follow the live feed of a running exchange while traders place and cancel. Their connections end at random moments, and each new
 * one goes to any of the apis; processes are killed and the chain forks meanwhile. At the end the copies equal what REST returns.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '../../../client/client.ts'
import { ClearbatchError } from '../../../client/errors.ts'
import type { Placement } from '../../../client/responses.ts'
import { settled } from '../../../stack/audit/audit.ts'
import { FeedCopies } from '../../../stack/audit/feed-copies.ts'
import type { Stack } from '../../../stack/stack.ts'
import { replaceBlocks } from '../../support/chain-faults.ts'
import { type Switch, startSwitch } from '../../support/proxy.ts'
import { randomOf } from '../../support/random.ts'
import { nearOracle, traderOn } from './stack.ts'

export type FeedFault = 'api' | 'indexer' | 'keeper' | 'fork'

export interface FeedRunOptions {
  readonly stack: Stack
  /** Base URLs of the apis that a new connection may reach. */
  readonly apis: readonly string[]
  readonly seed: number
  readonly marketIds: readonly number[]
  readonly traders: number
  readonly copiesPerTrader: number
}

const FORK_DEPTH = 4
/** Between two actions of a trader, and between two connections that end. */
const ACTION_MS = 150
const END_MS = 20
const LIVE_ORDERS = 20

export class FeedRun {
  readonly #options: FeedRunOptions
  readonly #random: (end: number) => number
  readonly #switch: Switch
  readonly #copies: FeedCopies
  readonly #traders: readonly Client[]
  /** Forks keep the blocks up to this one. */
  readonly #kept: number

  private constructor(options: FeedRunOptions, parts: { apis: Switch; kept: number }) {
    const { stack, marketIds, traders, copiesPerTrader } = options
    this.#options = options
    this.#random = randomOf(options.seed)
    this.#switch = parts.apis
    this.#kept = parts.kept
    this.#traders = Array.from({ length: traders }, (_, index) => traderOn(stack, index, 60_000))
    const accounts = stack.file.accounts.slice(0, traders)
    this.#copies = new FeedCopies({
      ...{ baseUrl: stack.file.base_url, feedUrl: parts.apis.url, marketIds },
      accounts: Array.from({ length: copiesPerTrader }, () => accounts).flat(),
    })
  }

  static async start(options: FeedRunOptions): Promise<FeedRun> {
    const choose = randomOf(options.seed + 1)
    const apis = await startSwitch(options.apis, () => choose(options.apis.length))
    const run = new FeedRun(options, { apis, kept: await options.stack.provider.getBlockNumber() })
    await run.#copies.untilCurrent()
    return run
  }

  get figures(): { readonly resumes: number; readonly messages: number; readonly snapshots: number } {
    const { resumes, messages, snapshots } = this.#copies
    return { resumes, messages, snapshots }
  }

  /** Ends so many connections while the traders trade and the faults happen one after another. Returns the differences once all is settled. */
  async play(resumes: number, faults: readonly FeedFault[]): Promise<readonly string[]> {
    const goal = this.#copies.resumes + resumes
    let isOver = false
    const trading = this.#traders.map((client) => this.#trade(client, () => isOver))
    const injecting = this.#inject(faults)
    while (this.#copies.resumes < goal) {
      await sleep(this.#random(END_MS))
      this.#copies.interrupt(this.#random(this.#copies.size))
    }
    await injecting
    isOver = true
    await Promise.all(trading)
    await Promise.all(this.#traders.map((client) => client.orders.cancelAll()))
    await settled(this.#options.stack.db)
    await this.#copies.untilCurrent()
    return this.#copies.differences()
  }

  async close(): Promise<void> {
    this.#copies.close()
    for (const client of this.#traders) client.close()
    await this.#switch.close()
  }

  async #trade(client: Client, isOver: () => boolean): Promise<void> {
    const placed: Placement[] = []
    while (!isOver()) {
      await sleep(this.#random(2 * ACTION_MS))
      try {
        if (placed.length > this.#random(LIVE_ORDERS)) await this.#cancel(client, placed)
        else placed.push(await this.#place(client))
      } catch (error) {
        // A rule of the exchange, or the result of a fault, rejects it.
        if (!(error instanceof ClearbatchError)) throw error
      }
    }
  }

  #cancel(client: Client, placed: Placement[]) {
    const [{ order }] = placed.splice(this.#random(placed.length), 1) as [Placement]
    return client.orders.cancel(order.order_hash)
  }

  async #place(client: Client): Promise<Placement> {
    const { marketIds } = this.#options
    const marketId = marketIds[this.#random(marketIds.length)] as number
    const price = await nearOracle(client, marketId, this.#random(21) - 10)
    const side = this.#random(2) === 0 ? 'LONG' : 'SHORT'
    return client.orders.place({ marketId, side, price, quantity: '1', leverage: 2 })
  }

  async #inject(faults: readonly FeedFault[]): Promise<void> {
    const { stack } = this.#options
    for (const fault of faults) {
      await sleep(this.#random(3_000))
      if (fault === 'fork') await this.#fork(1 + this.#random(FORK_DEPTH))
      else {
        await stack[fault].restart('SIGKILL')
        await stack[fault].ready()
      }
    }
  }

  async #fork(depth: number): Promise<void> {
    const { provider } = this.#options.stack
    const replaced = Math.min(depth, (await provider.getBlockNumber()) - this.#kept)
    if (replaced > 0) await replaceBlocks(provider, replaced)
  }
}

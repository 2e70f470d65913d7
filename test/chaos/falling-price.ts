/** A crash day of a market's oracle price during a run, which liquidates leveraged positions, and its way back to the first price. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Db } from '../../db/client.ts'
import { latestReport } from '../../db/oracle-reports.ts'
import type { Price } from '../../domain/units.ts'
import { type FeedOverride, overrideFeed } from '../../stack/feed-override.ts'
import type { ReportSigner } from '../../stack/oracle.ts'
import { CRASH_DAY } from '../e2e/support/crash-run.ts'

/** The crypto perpetual. */
const MARKET = 1
/** The contracts accept a move of a tenth within a second. */
const STEP_MS = 1_100
const MOST_MOVED = 0.08
const START = 1_000

export class FallingPrice {
  readonly #feed: FeedOverride
  readonly #first: bigint
  readonly #loop: Promise<void>
  #thousandths = START
  #isOver = false

  private constructor(feed: FeedOverride, first: bigint) {
    this.#feed = feed
    this.#first = first
    this.#loop = this.#fall()
  }

  static async start(exchange: { readonly db: Db; readonly oracle: ReportSigner }): Promise<FallingPrice> {
    const report = await latestReport(exchange.db, { marketId: MARKET, feed: 'index' })
    if (report === null) throw new Error(`market ${MARKET} has no price`)
    // A database that fails accepts a later report.
    return new FallingPrice(
      overrideFeed(exchange, MARKET, () => true),
      report.price,
    )
  }

  /** The price is the first one again. */
  async recover(): Promise<void> {
    this.#isOver = true
    await this.#loop
    while (this.#thousandths < START)
      await this.#move(Math.min(START, Math.floor(this.#thousandths * (1 + MOST_MOVED))))
  }

  /** The keeper publishes the price. */
  release(): Promise<void> {
    return this.#feed.release()
  }

  async #fall(): Promise<void> {
    for (const thousandths of CRASH_DAY) {
      if (this.#isOver) return
      await this.#move(thousandths)
    }
  }

  async #move(thousandths: number): Promise<void> {
    this.#thousandths = thousandths
    this.#feed.setPrice(((this.#first * BigInt(thousandths)) / BigInt(START)) as Price)
    await sleep(STEP_MS)
  }
}

/** A market whose marks are left out: each turn takes the steps of its liquidations, then runs its auction. */
import type { Fence } from '../../../db/fence.ts'
import { listedTerms } from '../../../domain/market/changes.ts'
import { listedParameters } from '../../../domain/market/parameters.ts'
import { toStoredTerms } from '../../../domain/market/stored-terms.ts'
import type { Millis } from '../../../domain/units.ts'
import { e18, perpetual } from '../../support/markets.ts'
import {
  type Auction,
  createAuction,
  createLiquidations,
  createMarketMemory,
  type Liquidations,
} from './engine-turns.ts'
import { addressOf, MarketFixture, RULES, type Trader } from './market-fixture.ts'

export class LiquidationRun {
  readonly fixture: MarketFixture
  readonly settling: Fence
  readonly alice: Trader
  readonly bob: Trader
  readonly carol: Trader
  /** Of failed steps, as the metric shows them. */
  readonly failures: string[] = []
  /** Null while no node responds. */
  headTime: number | null
  #auction!: Auction
  #liquidations!: Liquidations

  private constructor(
    fixture: MarketFixture,
    settling: Fence,
    [alice, bob, carol]: readonly [Trader, Trader, Trader],
  ) {
    this.fixture = fixture
    this.settling = settling
    this.alice = alice
    this.bob = bob
    this.carol = carol
    this.headTime = fixture.clock.value
    this.restart()
  }

  /** The oracle price is 1,000 ticks. */
  static async open(): Promise<LiquidationRun> {
    const fixture = await MarketFixture.open(perpetual)
    await fixture.report(1000)
    const settling = await fixture.lease('settle:m1')
    const traders = [
      await fixture.trader('alice'),
      await fixture.trader('bob'),
      await fixture.trader('carol'),
    ] as const
    return new LiquidationRun(fixture, settling, traders)
  }

  /** Another owner, without any memory. */
  restart(): void {
    const ports = { ...this.fixture.turnPorts(), headTime: () => this.headTime as Millis | null }
    const memory = createMarketMemory({ ...RULES, kind: perpetual.kind })
    this.#auction = createAuction(ports, perpetual, memory)
    this.#liquidations = createLiquidations(ports, perpetual, memory)
  }

  async turn(): Promise<void> {
    await this.liquidate()
    await this.auction()
  }

  /** The steps of liquidations alone. */
  async liquidate(): Promise<void> {
    this.failures.push(...(await this.#liquidations.update()))
  }

  /** The auction alone. Returns the number of its batch; null if it matched nothing. */
  auction(): Promise<number | null> {
    return this.#auction.run()
  }

  async wait(ms: number): Promise<void> {
    this.fixture.clock.value += ms
    if (this.headTime !== null) this.headTime = this.fixture.clock.value
  }

  /** A report of the next interval. */
  async report(ticks: number): Promise<void> {
    await this.wait(200)
    await this.fixture.report(ticks)
  }

  /** The first party buys with this leverage, at 1,000. */
  async deal(buyer: Trader, seller: Trader, steps: number, leverage: number): Promise<void> {
    await this.fixture.place({ by: buyer, side: 'LONG', steps, limit: 1000, leverage })
    await this.fixture.place({ by: seller, side: 'SHORT', steps, limit: 1000 })
    await this.turn()
    await this.turn()
  }

  /** The forced orders in the book. */
  resting() {
    const { engine, spec } = this.fixture
    return engine.state.books
      .of(spec.marketId)
      .book.orders()
      .filter(({ forced }) => forced)
  }

  /** The market is in mode cancel-only by a restriction of the exchange itself, or of the contract. */
  async restrict(by: 'exchange' | 'contract'): Promise<void> {
    const { db, spec } = this.fixture
    const terms = toStoredTerms({ ...listedTerms(listedParameters(spec, null)), mode: 'cancel_only' })
    const change = by === 'exchange' ? { mode: 'cancel_only' as const } : { terms: JSON.stringify(terms) }
    await db.updateTable('markets').set(change).execute()
  }

  async pauseUntil(end: number): Promise<void> {
    const values = { chain_id: 6343, next_block: 1, bank_pause_ends_at: Math.ceil(end / 1000) }
    await this.fixture.db
      .insertInto('chain_progress')
      .values({ ...values, genesis_hash: '0x', head: 0, completed_at: 0 } as never)
      .execute()
  }

  /** A backstop that may have this notional in wei × 1e-18, and owns as much. */
  async back(cap: string): Promise<Trader> {
    const backstop = await this.fixture.trader('backstop', cap)
    await this.fixture.db
      .updateTable('markets')
      .set({ backstop: addressOf(backstop.wallet), backstop_cap: e18(cap) })
      .execute()
    return backstop
  }
}

/** The job that ends markets, on a fixture with a chain: restarted at will, under clocks that days pass for. */

import { id, parseEther, Wallet } from 'ethers'
import type { Fence } from '../../../db/fence.ts'
import { publishReports } from '../../../db/oracle-reports.ts'
import type { Feed } from '../../../domain/prices/feed.ts'
import type { OracleReport } from '../../../domain/settlement/settlement.ts'
import type { Millis, Price } from '../../../domain/units.ts'
import { createCalls } from '../../../keeper/adapters/calls.ts'
import { createChain, createSigner } from '../../../keeper/adapters/chain.ts'
import { createEndings } from '../../../keeper/ending/ending.ts'
import { createFinalizations } from '../../../keeper/ending/finalizations.ts'
import { createEndingStore } from '../../../keeper/ending/store.ts'
import { Delivery } from '../../../keeper/relayer/delivery.ts'
import { createRelayerStore } from '../../../keeper/relayer/store.ts'
import { plainKey } from '../../../service/keys/key-source.ts'
import { feedIdOf, finalFeedIdOf } from '../../../stack/deploy.ts'
import { passTime } from '../../support/chain-faults.ts'
import { projectMirror, withMirror } from '../../support/mirror.ts'
import { PATIENCE } from '../../support/patience.ts'
import { type ChainFixture, POLICY } from './chain-fixture.ts'
import { NO_METRICS, SILENT_LOGGER, type Trader } from './market-fixture.ts'

const CHAIN_ID = 6343
const SETTLING = 3
const DAY_MS = 86_400_000
const key = id('lane ending')
const signer = createSigner(CHAIN_ID, plainKey(key))
const lane = { name: 'ending', relayer: signer.address, chainId: CHAIN_ID }

export class EndingFixture {
  readonly fixture: ChainFixture
  readonly #ending: Fence
  readonly #settling: Fence
  #pass!: (fence: Fence) => Promise<'idle' | 'waiting'>
  #delivery!: Delivery
  #headTime = 0 as Millis
  /** Whether the closed market has no final report, by the metric. */
  isMissing: boolean | null = null
  /** Logged at error level. */
  readonly errors: unknown[] = []

  private constructor(fixture: ChainFixture, ending: Fence, settling: Fence) {
    this.fixture = fixture
    this.#ending = ending
    this.#settling = settling
  }

  static async open(fixture: ChainFixture): Promise<EndingFixture> {
    const { provider, admin } = fixture.chainSide
    await (await admin.sendTransaction({ to: new Wallet(key).address, value: parseEther('10') })).wait()
    const own = new EndingFixture(
      fixture,
      await fixture.lease('ending'),
      await fixture.lease(`settle:m${fixture.spec.marketId}`),
    )
    await createRelayerStore(fixture).register(lane, await provider.getTransactionCount(lane.relayer))
    own.restart()
    return own
  }

  /** A job that remembers nothing. */
  restart(): void {
    const { fixture } = this
    const { db, clock } = fixture
    const { url } = fixture.chainSide.anvil
    const relayers = createRelayerStore(fixture)
    const ports = {
      ...{ relayers, signer, clock, confirmations: 0, policy: POLICY },
      logger: { ...SILENT_LOGGER, error: (details: unknown) => this.errors.push(details) },
      chain: createChain({ url, chainId: CHAIN_ID, requestTimeoutMs: 3000, sendTimeoutMs: 3000 }),
      calls: createCalls({ part: 400_000n, order: 150_000n, simple: 300_000n }),
      metrics: {
        ...NO_METRICS,
        finalReportMissing: (_: unknown, isMissing: boolean) => {
          this.isMissing = isMissing
        },
      },
      store: createEndingStore(db),
      finalizations: createFinalizations(fixture),
      headTime: () => this.#headTime,
      fee: () => ({ maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 1_000_000n }),
      ...{ wakeSettlement: () => {}, killPoint: () => {}, onChange: () => {} },
    }
    this.#delivery = new Delivery(ports, lane)
    this.#pass = createEndings({ ...ports, delivery: this.#delivery }, lane)
  }

  /** One pass and the responses to what it sent; the indexer has not followed. */
  async pass(): Promise<void> {
    const block = await this.fixture.chainSide.provider.getBlock('latest')
    this.#headTime = ((block?.timestamp ?? 0) * 1000) as Millis
    await this.fixture.readHead()
    await projectMirror(this.fixture.db)
    await this.#pass(this.#ending)
    await this.#delivery.settled()
  }

  /** Passes and settles, with the indexer following, until `isDone`. */
  async until(isDone: () => Promise<boolean>, limitMs = 15_000): Promise<void> {
    for (const deadline = Date.now() + limitMs * PATIENCE; ; ) {
      await this.pass()
      await this.fixture.follow()
      const settlement = this.fixture.settlement()
      await settlement.start(this.#settling)
      await settlement.settleAll(this.#settling)
      await projectMirror(this.fixture.db)
      if (await isDone()) return
      if (Date.now() > deadline)
        throw new Error(`still not done: ${JSON.stringify(await this.transactions())}`)
    }
  }

  /** The indexer follows the chain, and the read model its rows. */
  async follow(): Promise<void> {
    await this.fixture.follow()
    await projectMirror(this.fixture.db)
  }

  /** The chain's time passes, and all clocks with it. */
  async passTime(ms: number): Promise<void> {
    const { fixture } = this
    await passTime(fixture.chainSide, ms)
    const block = await fixture.chainSide.provider.getBlock('latest')
    fixture.clock.value = (block?.timestamp ?? 0) * 1000
    await this.follow()
  }

  /** The market is announced to close, and closes. */
  async close(): Promise<void> {
    const { fixture } = this
    const block = await fixture.chainSide.provider.getBlock('latest')
    const from = (block?.timestamp ?? 0) * 1000 + DAY_MS + 5_000
    const market = fixture.trading().connect(fixture.chainSide.admin)
    await (await market.scheduleMode(SETTLING, from)).wait()
    await this.passTime(DAY_MS + 10_000)
  }

  /** The feed says so from now on. `signed`: the price under the signatures, if it is another one. */
  async publish(feed: Feed, price: Price, signed = price): Promise<OracleReport> {
    const { fixture } = this
    const { marketId } = fixture.spec
    const observedAt = Math.floor(fixture.clock.value) as Millis
    const feedId = feed === 'final' ? finalFeedIdOf(marketId) : feedIdOf(marketId)
    const signatures = fixture.signFeed(feedId, signed, observedAt) as `0x${string}`
    const report = { price, observedAt, signatures }
    await publishReports(fixture.db, [{ marketId, feed, report, readings: [] }])
    return report
  }

  async market() {
    return this.fixture.db
      .selectFrom('markets')
      .select(['mode', 'final_report', 'ended'])
      .executeTakeFirstOrThrow()
  }

  /** Purpose and status, in the order of their nonces. */
  async transactions(): Promise<string[]> {
    const rows = await this.fixture.transactions()
    return rows
      .filter(({ relayer }) => relayer === lane.relayer)
      .map(({ purpose, status }) => `${purpose} ${status}`)
  }

  async freeOf({ account }: Trader): Promise<bigint> {
    const row = await withMirror(this.fixture.db)
      .selectFrom('accounts')
      .select('free')
      .where('user_id', '=', account)
      .executeTakeFirstOrThrow()
    return row.free
  }

  async openPositions(): Promise<number> {
    const rows = await withMirror(this.fixture.db)
      .selectFrom('positions')
      .select('user_id')
      .where('size', '<>', 0)
      .execute()
    return rows.length
  }
}

/** A price publisher on a database of its own, with sources and signers that a test controls. */
import { id } from 'ethers'
import type { Fence } from '../../../db/fence.ts'
import { latestReport } from '../../../db/oracle-reports.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { Reading, SourceAnswer } from '../../../domain/prices/aggregate.ts'
import { rangeOf } from '../../../domain/prices/feed.ts'
import { type FeedId, reportHasher, signerOf } from '../../../domain/prices/report-hash.ts'
import type { SigningRules } from '../../../domain/prices/signing.ts'
import type { Address, Millis } from '../../../domain/units.ts'
import type { PriceSource, ReportSigner } from '../../../keeper/ports.ts'
import type { FeedSetup, PriceMetrics } from '../../../keeper/prices/ports.ts'
import { createPublisher, type Publisher } from '../../../keeper/prices/publisher.ts'
import { createQuorum } from '../../../keeper/prices/quorum.ts'
import type { SignerSet } from '../../../keeper/prices/signer-sets.ts'
import { createPriceStore } from '../../../keeper/prices/store.ts'
import { keccak, recover } from '../../../service/crypto.ts'
import { plainKey } from '../../../service/keys/key-source.ts'
import { createReportKey, type ReportKey } from '../../../service/report-key.ts'
import { e18 } from '../../support/markets.ts'
import { MarketFixture, SILENT_LOGGER } from '../support/market-fixture.ts'

export const ORACLE = { chainId: 6343n, oracle: `0x${'33'.repeat(20)}` as Address }
export const FEED_ID: FeedId = `0x${'0'.repeat(63)}1`

export const NO_PRICE_METRICS: PriceMetrics = {
  published() {},
  absent() {},
  dropped() {},
  signerFault() {},
}

/** A source whose next answers the test sets. By default it observes `price` now. */
export class TestSource implements PriceSource {
  readonly name: string
  readonly maxAge = 5_000 as Millis
  readonly maxDeviation = 10_000n
  price: bigint
  age = 0
  fault: string | null = null

  constructor(name: string, price: string) {
    this.name = name
    this.price = e18(price)
  }

  answer(now: Millis): Omit<SourceAnswer, 'source'> {
    if (this.fault !== null) return { reading: null, fault: this.fault }
    return { reading: { price: this.price, observedAt: (now - this.age) as Millis }, fault: null }
  }

  stop(): void {}
}

export class PublisherFixture {
  readonly market: MarketFixture
  readonly spec: MarketSpec
  readonly sources = ['a', 'b', 'c'].map((name) => new TestSource(name, '100'))
  readonly keys: readonly ReportKey[]
  /** What the quorum asks: replaced by tests of faults. */
  signers: ReportSigner[]
  rules: SigningRules
  /** The signers that the oracle accepts. */
  readonly accepted: SignerSet

  private constructor(market: MarketFixture) {
    this.market = market
    this.spec = market.spec
    this.rules = {
      range: rangeOf(market.spec, 'index'),
      maxAge: 5_000 as Millis,
      maxAhead: 2_000 as Millis,
      move: { kind: 'perpetual', moveBase: 100_000n, moveSlope: 20_000n, moveWindow: 1_000 as Millis },
    }
    this.keys = ['one', 'two', 'three'].map((name) => this.key(name))
    this.accepted = { signers: new Set(this.keys.map(({ address }) => address)), threshold: 2 }
    this.signers = this.keys.map((key, at) => ({
      name: `signer ${at}`,
      address: key.address,
      sign: async (requests) => key.sign(requests),
    }))
  }

  static async open(spec: MarketSpec): Promise<PublisherFixture> {
    return new PublisherFixture(await MarketFixture.open(spec))
  }

  /** `aheadMs`: by how much the signer's clock is wrong. */
  key(name: string, aheadMs = 0): ReportKey {
    return createReportKey({
      key: plainKey(id(name)),
      domain: ORACLE,
      rulesOf: () => this.rules,
      clock: { now: () => (this.market.clock.value + aheadMs) as Millis },
      after: 0 as Millis,
    })
  }

  readonly digestOf = reportHasher(ORACLE, keccak)

  feeds: readonly FeedSetup[] = [
    {
      ...{ marketId: 1, feed: 'index', feedId: FEED_ID, minimum: 2, maxSpread: 20_000n, isRound: false },
      maxAhead: 2_000 as Millis,
      publication: { interval: 500 as Millis, phase: 0 as Millis, deviation: 1_000n },
      sources: this.sources,
    },
  ]

  publisher(killPoint: (point: string) => void = () => {}): Publisher {
    const clock = this.market.clock
    const quorum = createQuorum({
      ...{ setOf: () => this.accepted, deadlineMs: 100, digestOf: this.digestOf, recover, clock },
      ...{ signers: this.signers, metrics: NO_PRICE_METRICS, logger: SILENT_LOGGER },
    })
    return createPublisher({
      ...{ store: createPriceStore(this.market.db), feeds: () => this.feeds, quorum, clock, killPoint },
      ...{ metrics: NO_PRICE_METRICS, logger: SILENT_LOGGER },
    })
  }

  /** A publisher under a lease of its own. */
  async run(publisher: Publisher, fence: Fence, steps = 1, passMs = 500): Promise<void> {
    for (let step = 0; step < steps; step++) {
      this.market.clock.value += passMs
      await publisher.step(fence)
    }
  }

  async state() {
    const row = await this.market.db
      .selectFrom('oracle_reports')
      .selectAll()
      .where('feed', '=', 'index')
      .executeTakeFirst()
    return row === undefined ? null : { ...row, dropped: droppedOf(row.readings) }
  }

  latest = () => latestReport(this.market.db, { marketId: 1, feed: 'index' })

  /** The addresses that have signed the latest report, in the order of their signatures. */
  async signersOf(): Promise<(Address | null)[]> {
    const report = await this.latest()
    if (report === null) return []
    const { price, observedAt, signatures } = report
    const digest = this.digestOf(FEED_ID, { price, observedAt } satisfies Reading).slice()
    const each = signatures.slice(2).match(/.{130}/g) ?? []
    return each.map((signature) => signerOf(digest, `0x${signature}`, recover))
  }

  close = () => this.market.close()
}

const droppedOf = (readings: string): Record<string, string> =>
  Object.fromEntries(
    (JSON.parse(readings) as { source: string; dropped: string | null }[])
      .filter(({ dropped }) => dropped !== null)
      .map(({ source, dropped }) => [source, dropped as string]),
  )

/** Wires the price publisher: its configuration, sources and signers. */
import type { Db } from '../db/client.ts'
import { statedPrice } from '../db/market-endings.ts'
import { phaseOf } from '../domain/prices/publication.ts'
import { reportHasher } from '../domain/prices/report-hash.ts'
import type { SigningRules } from '../domain/prices/signing.ts'
import type { Address, Millis } from '../domain/units.ts'
import type { Clock } from '../service/clock.ts'
import { keccak, recover } from '../service/crypto.ts'
import type { KeySource } from '../service/keys/key-source.ts'
import type { KillPointHook } from '../service/kill-point.ts'
import type { Logger } from '../service/logger.ts'
import { createReportKey } from '../service/report-key.ts'
import { createLocalSigner, createRemoteSigner } from './adapters/report-signers.ts'
import { createAggregatorSource } from './adapters/sources/aggregator.ts'
import { createHttpSources } from './adapters/sources/http.ts'
import { createOperatorSource } from './adapters/sources/operator.ts'
import { createRecordingSource } from './adapters/sources/recording.ts'
import { createWalkSource } from './adapters/sources/walk.ts'
import type { PricesConfig } from './config.ts'
import type { ReportInformer } from './inform/reports.ts'
import type { LeaderJob } from './leader/leader-loop.ts'
import type { Chain, PriceSource, ReportSigner } from './ports.ts'
import type { FeedTerms, PriceFile, SignerTerms, SourceTerms } from './price-file.ts'
import type { FeedSetup, PriceMetrics, Quorum } from './prices/ports.ts'
import { createPublisher } from './prices/publisher.ts'
import { createQuorum } from './prices/quorum.ts'
import { createSignerSets, type SignerSets } from './prices/signer-sets.ts'
import { createPriceStore } from './prices/store.ts'

export interface PricePorts {
  readonly db: Db
  readonly chain: Pick<Chain, 'feedSigners'>
  readonly chainId: number
  readonly rpcUrl: string
  readonly rpcTimeoutMs: number
  readonly clock: Clock
  readonly killPoint: KillPointHook<'after-report-signing' | 'after-report-storing'>
  readonly metrics: PriceMetrics
  readonly logger: Logger
  /** Sends the reports to the engine; null: no engine runs. */
  readonly informer: Pick<ReportInformer, 'poll' | 'settled'> | null
}

/** Components built from one version of the configuration. */
interface PriceSetup {
  readonly feeds: readonly FeedSetup[]
  readonly quorum: Quorum
  /** Reads from the oracle which signers it accepts. */
  readonly refreshSigners: () => Promise<void>
}

/** Interval at which the configuration is looked at. */
const RELOAD_MS = 1_000

/** Publishes the prices of all markets, under one lease. Polls sources only while this process owns it. */
export function createPriceJob(ports: PricePorts, config: PricesConfig): LeaderJob {
  /** By oracle: what was read of one stays known when the file changes. */
  const known = new Map<Address, SignerSets>()
  let threshold = 0
  const setUp = (file: PriceFile, feeds: readonly FeedSetup[]): PriceSetup => {
    threshold = file.threshold
    const signerSets = known.get(file.oracle) ?? createSignerSetsOf(ports, file.oracle, () => threshold)
    known.set(file.oracle, signerSets)
    const signed = feeds.filter(({ isRound }) => !isRound).map(({ feedId }) => feedId)
    return {
      feeds,
      quorum: createQuorumOf(ports, config, file, signerSets),
      refreshSigners: () => signerSets.refresh(signed),
    }
  }
  let setup = setUp(config.load(), [])
  let loadedText: string | null = null
  let timer: NodeJS.Timeout | undefined
  const publisher = createPublisher({
    ...ports,
    store: createPriceStore(ports.db),
    feeds: () => setup.feeds,
    quorum: { collect: (requests) => setup.quorum.collect(requests) },
  })

  function close(): void {
    clearInterval(timer)
    for (const { sources } of setup.feeds) for (const source of sources) source.stop()
    setup = { ...setup, feeds: [] }
    loadedText = null
  }

  /** An invalid file leaves the configuration as it is. */
  function load(): void {
    try {
      const text = config.read()
      if (text === loadedText) return
      const file = config.parse(text)
      for (const { sources } of setup.feeds) for (const source of sources) source.stop()
      setup = setUp(file, createFeeds(ports, file.feeds))
      loadedText = text
      ports.logger.info(
        { feeds: file.feeds.length, signers: file.signers.length },
        'price configuration read',
      )
    } catch (err) {
      ports.logger.error({ err }, 'price configuration is invalid; the last valid one stays')
    }
  }

  return {
    async start() {
      close()
      load()
      timer = setInterval(() => {
        load()
        void setup.refreshSigners()
      }, RELOAD_MS)
      await setup.refreshSigners()
      await publisher.start()
    },
    async step(fence) {
      const { pauseMs, mayHaveChanged } = await publisher.step(fence)
      if (mayHaveChanged) ports.informer?.poll()
      return pauseMs
    },
    reset: close,
    async finish() {
      close()
      await ports.informer?.settled()
    },
  }
}

// ---------------------------------------------------------------------- sources

function createFeeds(ports: PricePorts, feeds: readonly FeedTerms[]): FeedSetup[] {
  const httpSource = createHttpSources(ports.clock)
  const { rpcUrl, rpcTimeoutMs: timeoutMs } = ports
  const sourceOf = (terms: SourceTerms, marketId: number): PriceSource => {
    switch (terms.kind) {
      case 'http':
        return httpSource(terms)
      case 'aggregator':
        return createAggregatorSource(terms, { rpcUrl, timeoutMs })
      case 'recording':
        return createRecordingSource(terms)
      case 'walk':
        return createWalkSource(terms, marketId)
      case 'operator':
        return createOperatorSource(terms, () => statedPrice(ports.db, marketId))
    }
  }
  return feeds.map(({ interval, deviation, sources, ...feed }, index) => ({
    ...feed,
    publication: { interval, deviation, phase: phaseOf(index, interval) },
    sources: sources.map((terms) => sourceOf(terms, feed.marketId)),
  }))
}

// ---------------------------------------------------------------------- signers

/** `stated`: the threshold of the configuration. The oracle's own decides; another one in the file is a mistake that its operator should know. */
const createSignerSetsOf = (
  { chain, clock, logger }: PricePorts,
  oracle: Address,
  stated: () => number,
): SignerSets =>
  createSignerSets({
    ...{ clock, logger },
    async read(feedId, observedAt) {
      const set = await chain.feedSigners(oracle, feedId, observedAt)
      if (set.threshold !== stated() && set.threshold !== 0)
        logger.error(
          { feed_id: feedId, oracle: set.threshold, configured: stated() },
          'the price configuration states another number of signatures than the oracle needs',
        )
      return set
    },
  })

/** The rules of keys in this process. What they sign was aggregated by the same process, so more checks would prove nothing. */
const LOCAL_RULES: SigningRules = {
  range: { low: 0n, high: 2n ** 127n },
  maxAge: 5_000 as Millis,
  maxAhead: 2_000 as Millis,
  move: null,
}

function createQuorumOf(
  ports: PricePorts,
  config: PricesConfig,
  file: PriceFile,
  signerSets: SignerSets,
): Quorum {
  const domain = { chainId: BigInt(ports.chainId), oracle: file.oracle }
  const signerOf = ({ name, remote }: SignerTerms): ReportSigner => {
    if (remote !== null) return createRemoteSigner({ name, ...remote, secret: config.secret ?? '' })
    const key = config.keys.get(name) as KeySource
    const { clock } = ports
    const rulesOf = (): SigningRules => LOCAL_RULES
    return createLocalSigner(name, createReportKey({ key, domain, rulesOf, clock, after: 0 as Millis }))
  }
  return createQuorum({
    ...ports,
    ...{ deadlineMs: file.deadlineMs, recover, setOf: signerSets.at },
    signers: file.signers.map(signerOf),
    digestOf: reportHasher(domain, keccak),
  })
}

/** What the publisher stores is what the oracles on the chain accept: signatures of a quorum, and rounds of an aggregator. */
import { expect } from 'chai'
import { HDNodeWallet, id, JsonRpcProvider, NonceManager, ZeroAddress } from 'ethers'
import { after, before, describe, it } from 'mocha'
import { latestReport } from '../../../db/oracle-reports.ts'
import { type FeedId, type OracleDomain, reportHasher } from '../../../domain/prices/report-hash.ts'
import type { Address, MarketId, Millis } from '../../../domain/units.ts'
import { createChain } from '../../../keeper/adapters/chain.ts'
import { createAggregatorSource } from '../../../keeper/adapters/sources/aggregator.ts'
import type { PriceSource } from '../../../keeper/ports.ts'
import { createPublisher } from '../../../keeper/prices/publisher.ts'
import { createQuorum } from '../../../keeper/prices/quorum.ts'
import { createSignerSets } from '../../../keeper/prices/signer-sets.ts'
import { createPriceStore } from '../../../keeper/prices/store.ts'
import { keccak, recover } from '../../../service/crypto.ts'
import { plainKey } from '../../../service/keys/key-source.ts'
import { createReportKey, type ReportKey, type SigningRequest } from '../../../service/report-key.ts'
import { assignFunctions, takeRole } from '../../../stack/access.ts'
import { type Anvil, startAnvil } from '../../../stack/anvil.ts'
import { AggregatorOracle__factory } from '../../../typechain-types/factories/AggregatorOracle__factory.ts'
import { ExchangeAccess__factory } from '../../../typechain-types/factories/ExchangeAccess__factory.ts'
import { FeedMock__factory } from '../../../typechain-types/factories/mocks/FeedMock__factory.ts'
import { SignedPriceOracle__factory } from '../../../typechain-types/factories/SignedPriceOracle__factory.ts'
import { e18, perpetual } from '../../support/markets.ts'
import { listMarket } from '../../support/rows/markets.ts'
import { MarketFixture, SILENT_LOGGER } from '../support/market-fixture.ts'
import { FEED_ID, NO_PRICE_METRICS, TestSource } from './publisher-fixture.ts'

const CHAIN_ID = 6343
const ROUND_FEED: FeedId = `0x${'0'.repeat(63)}2`
const DEVELOPER = HDNodeWallet.fromPhrase('test test test test test test test test test test test junk')

describe('reports of the publisher on the chain', function () {
  this.timeout(120_000)
  let anvil: Anvil
  let provider: JsonRpcProvider
  let fixture: MarketFixture

  before(async () => {
    anvil = await startAnvil({ blockTime: 1, mixedMining: true })
    provider = new JsonRpcProvider(anvil.url, CHAIN_ID, {
      staticNetwork: true,
      pollingInterval: 20,
      cacheTimeout: -1,
    })
    fixture = await MarketFixture.open(perpetual)
  })
  after(async () => {
    await fixture.close()
    provider.destroy()
    await anvil.stop()
  })

  /** Both oracles, a feed of three signers of which two must sign, and a feed of an aggregator with one round. */
  async function deploy(signers: readonly Address[], round: bigint) {
    const admin = new NonceManager(DEVELOPER.connect(provider))
    const access = await new ExchangeAccess__factory(admin).deploy(await admin.getAddress(), 0)
    await takeRole(access, 'parameters', admin)
    const signed = await new SignedPriceOracle__factory(admin).deploy(access, 0)
    const rounds = await new AggregatorOracle__factory(admin).deploy(access, 0, ZeroAddress, 0)
    await assignFunctions(access, 'SignedPriceOracle', signed)
    await assignFunctions(access, 'AggregatorOracle', rounds)
    await (await signed.setFeed(FEED_ID, [...signers].sort(), 2)).wait()
    const mock = await new FeedMock__factory(admin).deploy(8)
    const at = Math.floor(Date.now() / 1000) - 30
    const data = { answer: 6_300_012_345_678n, startedAt: at, updatedAt: at, answeredInRound: round }
    await (await mock.push(round, data)).wait()
    await (await rounds.setFeed(ROUND_FEED, mock, 3_600)).wait()
    return { signed, rounds, mock, aggregator: (await mock.getAddress()).toLowerCase() as Address }
  }

  /** Any second market: the fixture has one. */
  async function listSecond(): Promise<void> {
    const trader = `0x${'22'.repeat(20)}` as Address
    await listMarket(fixture.db, { ...perpetual, marketId: 2 as MarketId, symbol: 'OTHER', trader })
  }

  async function sourceOf(address: Address): Promise<PriceSource> {
    const bounds = { name: 'chainlink', maxAge: 3_600_000 as Millis, maxDeviation: 10_000n }
    const source = createAggregatorSource(
      { kind: 'aggregator', address, pollMs: 50, ...bounds },
      { rpcUrl: anvil.url, timeoutMs: 2_000 },
    )
    while (source.answer(clock.now(), null).reading === null)
      await new Promise((resolve) => setTimeout(resolve, 20))
    return source
  }

  /** The second of the three signers signs nothing. */
  async function publisherOf(aggregator: PriceSource, oracle: Address) {
    const domain = { chainId: BigInt(CHAIN_ID), oracle }
    const signers = NAMES.map((name, index) => {
      const key = keyOf(name, domain)
      return {
        ...{ name, address: key.address },
        sign: async (requests: readonly SigningRequest[]) => (index === 1 ? [] : key.sign(requests)),
      }
    })
    const common = {
      ...{ feed: 'index' as const, minimum: 1, maxSpread: 20_000n, maxAhead: 2_000 as Millis },
      publication: { interval: 500 as Millis, phase: 0 as Millis, deviation: 1_000n },
    }
    const feeds = [
      { ...common, marketId: 1, feedId: FEED_ID, isRound: false, sources: [new TestSource('a', '63000.5')] },
      { ...common, marketId: 2, feedId: ROUND_FEED, isRound: true, sources: [aggregator] },
    ]
    const logging = { metrics: NO_PRICE_METRICS, logger: SILENT_LOGGER }
    const digestOf = reportHasher(domain, keccak)
    const chain = createChain({ ...NODE_LIMITS, url: anvil.url, chainId: CHAIN_ID })
    const read = (feedId: FeedId, at: Millis) => chain.feedSigners(oracle, feedId, at)
    const sets = createSignerSets({ read, clock, logger: SILENT_LOGGER })
    await sets.refresh([FEED_ID])
    const quorum = createQuorum({
      signers,
      setOf: sets.at,
      deadlineMs: 1_000,
      digestOf,
      recover,
      clock,
      ...logging,
    })
    const store = createPriceStore(fixture.db)
    return createPublisher({ store, feeds: () => feeds, quorum, clock, killPoint: () => {}, ...logging })
  }

  it('when two of three signers sign and an aggregator has a round, both oracles verify the stored reports, also after an update in the same second', async () => {
    const round = (7n << 64n) | 41n
    const addresses = NAMES.map((name) => keyOf(name, { chainId: 1n, oracle: ZERO }).address)
    const { signed, rounds, mock, aggregator } = await deploy(addresses, round)
    await listSecond()
    const source = await sourceOf(aggregator)
    const publishedAt = Date.now()
    const publisher = await publisherOf(source, (await signed.getAddress()).toLowerCase() as Address)
    const fence = await fixture.lease('prices')
    await publisher.start()
    await publisher.step(fence)
    source.stop()

    const [index, chainlink] = await Promise.all(
      [1, 2].map((marketId) => latestReport(fixture.db, { marketId, feed: 'index' })),
    )
    if (!index || !chainlink) throw new Error('not published')
    expect(index.signatures).to.have.length(2 + 2 * 130)
    await signed.verify(FEED_ID, index.price, index.observedAt, index.signatures)
    expect(chainlink).to.include({
      price: e18('63000.12345678'),
      signatures: `0x${'7'.padStart(4, '0')}${'29'.padStart(16, '0')}`,
    })
    await rounds.verify(ROUND_FEED, chainlink.price, chainlink.observedAt, chainlink.signatures)
    // An update that the publisher could not have seen has the time of its block, in whole seconds.
    const updatedAt = Math.floor(publishedAt / 1_000)
    const next = { answer: 1n, startedAt: updatedAt, updatedAt, answeredInRound: round + 1n }
    await (await mock.push(round + 1n, next)).wait()
    await rounds.verify(ROUND_FEED, chainlink.price, chainlink.observedAt, chainlink.signatures)
    const forged = await signed.verify(FEED_ID, index.price + 1n, index.observedAt, index.signatures).then(
      () => 'accepted',
      () => 'reverted',
    )
    expect(forged).to.equal('reverted')
  })
})

const ZERO = ZeroAddress as Address
const NAMES = ['one', 'two', 'three']
const NODE_LIMITS = { requestTimeoutMs: 2_000, sendTimeoutMs: 2_000 }
const clock = { now: () => Date.now() as Millis }

const keyOf = (name: string, domain: OracleDomain): ReportKey =>
  createReportKey({
    ...{ key: plainKey(id(name)), domain, clock, after: 0 as Millis },
    rulesOf: () => ({
      range: { low: 1n, high: e18('1000000') },
      ...{ maxAge: 5_000 as Millis, maxAhead: 2_000 as Millis, move: null },
    }),
  })

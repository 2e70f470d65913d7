/** What the publisher stores is what the oracles on the chain accept: signatures of a quorum, and rounds of an aggregator. */
import { expect } from 'chai'
import { HDNodeWallet, id, JsonRpcProvider, NonceManager, ZeroAddress } from 'ethers'
import { after, before, describe, it } from 'mocha'
import type { FeedId } from '../../../domain/prices/report-hash.ts'
import { reportHasher } from '../../../domain/prices/report-hash.ts'
import type { Address, Millis } from '../../../domain/units.ts'
import { createAggregatorSource } from '../../../keeper/adapters/sources/aggregator.ts'
import { createPublisher } from '../../../keeper/prices/publisher.ts'
import { createQuorum } from '../../../keeper/prices/quorum.ts'
import { createPriceStore } from '../../../keeper/prices/store.ts'
import { keccak, recover } from '../../../service/crypto.ts'
import { createReportKey } from '../../../service/report-key.ts'
import { assignFunctions, takeRole } from '../../../stack/access.ts'
import { type Anvil, startAnvil } from '../../../stack/anvil.ts'
import { AggregatorOracle__factory } from '../../../typechain-types/factories/AggregatorOracle__factory.ts'
import { ExchangeAccess__factory } from '../../../typechain-types/factories/ExchangeAccess__factory.ts'
import { FeedMock__factory } from '../../../typechain-types/factories/mocks/FeedMock__factory.ts'
import { SignedPriceOracle__factory } from '../../../typechain-types/factories/SignedPriceOracle__factory.ts'
import { e18, perpetual } from '../../support/markets.ts'
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

  it('when two of three signers sign and an aggregator has a round, both oracles verify the stored reports', async () => {
    const admin = new NonceManager(DEVELOPER.connect(provider))
    const access = await new ExchangeAccess__factory(admin).deploy(await admin.getAddress(), 0)
    await takeRole(access, 'parameters', admin)
    const signed = await new SignedPriceOracle__factory(admin).deploy(access, 0)
    const rounds = await new AggregatorOracle__factory(admin).deploy(access, 0, ZeroAddress, 0)
    await assignFunctions(access, 'SignedPriceOracle', signed)
    await assignFunctions(access, 'AggregatorOracle', rounds)
    const clock = { now: () => Date.now() as Millis }
    const domain = { chainId: BigInt(CHAIN_ID), oracle: (await signed.getAddress()).toLowerCase() as Address }
    const rules = {
      range: { low: 1n, high: e18('1000000') },
      maxAge: 5_000 as Millis,
      maxAhead: 2_000 as Millis,
    }
    const keys = ['one', 'two', 'three'].map((name) =>
      createReportKey({
        ...{ privateKey: id(name), domain, clock, after: 0 as Millis },
        rulesOf: () => ({ ...rules, move: null }),
      }),
    )
    await (await signed.setFeed(FEED_ID, keys.map(({ address }) => address).sort(), 2)).wait()

    const mock = await new FeedMock__factory(admin).deploy(8)
    const at = Math.floor(Date.now() / 1000) - 30
    const round = (7n << 64n) | 41n
    const data = { answer: 6_300_012_345_678n, startedAt: at, updatedAt: at, answeredInRound: round }
    await (await mock.push(round, data)).wait()
    await (await rounds.setFeed(ROUND_FEED, mock, 3_600)).wait()

    const address = (await mock.getAddress()).toLowerCase() as Address
    const bounds = { name: 'chainlink', maxAge: 3_600_000 as Millis, maxDeviation: 10_000n }
    const aggregator = createAggregatorSource(
      { kind: 'aggregator', address, pollMs: 50, ...bounds },
      { rpcUrl: anvil.url, timeoutMs: 2_000 },
    )
    while (aggregator.answer(clock.now(), null).reading === null)
      await new Promise((resolve) => setTimeout(resolve, 20))
    const common = {
      ...{ marketId: 1, minimum: 1, maxSpread: 20_000n, maxAhead: 2_000 as Millis },
      publication: { interval: 500 as Millis, phase: 0 as Millis, deviation: 1_000n },
    }
    const publisher = createPublisher({
      ...{ store: createPriceStore(fixture.db), clock, killPoint: () => {} },
      ...{ metrics: NO_PRICE_METRICS, logger: SILENT_LOGGER },
      feeds: () => feeds,
      quorum: createQuorum({
        signers: keys.map((key, index) => ({
          ...{ name: `${index}`, address: key.address },
          // The second one signs nothing.
          sign: async (requests) => (index === 1 ? [] : key.sign(requests)),
        })),
        ...{ threshold: 2, deadlineMs: 1_000, digestOf: reportHasher(domain, keccak), recover, clock },
        ...{ metrics: NO_PRICE_METRICS, logger: SILENT_LOGGER },
      }),
    })
    const feeds = [
      {
        ...common,
        feed: 'index',
        feedId: FEED_ID,
        isRound: false,
        sources: [new TestSource('a', '63000.5')],
      },
      // Any feed: the test market has no other.
      { ...common, marketId: 2, feed: 'index', feedId: ROUND_FEED, isRound: true, sources: [aggregator] },
    ] as const
    await fixture.db.insertInto('shards').values({ shard: 'm2' }).execute()
    const market = await fixture.db.selectFrom('markets').selectAll().executeTakeFirstOrThrow()
    const spec = { ...(market.spec as Record<string, never>), marketId: 2 }
    const other = {
      ...market,
      market_id: 2,
      symbol: 'OTHER',
      trader: `0x${'22'.repeat(20)}`,
      spec: JSON.stringify(spec),
    }
    await fixture.db
      .insertInto('markets')
      .values(other as never)
      .execute()

    const fence = await fixture.lease('prices')
    await publisher.start()
    await publisher.step(fence)
    aggregator.stop()
    const stored = await fixture.db.selectFrom('oracle_reports').selectAll().orderBy('market_id').execute()
    const [quorum, chainlink] = stored
    if (quorum?.price == null || chainlink?.price == null) throw new Error('not published')
    expect(quorum.signatures).to.have.length(2 + 2 * 130)
    await signed.verify(FEED_ID, quorum.price, quorum.observed_at as number, quorum.signatures as string)
    expect(chainlink.price).to.equal(e18('63000.12345678'))
    expect(chainlink.signatures).to.equal(`0x${round.toString(16).padStart(20, '0')}`)
    await rounds.verify(
      ROUND_FEED,
      chainlink.price,
      chainlink.observed_at as number,
      chainlink.signatures as string,
    )
    const forged = signed.verify(
      FEED_ID,
      quorum.price + 1n,
      quorum.observed_at as number,
      quorum.signatures as string,
    )
    expect(
      await forged.then(
        () => 'accepted',
        () => 'reverted',
      ),
    ).to.equal('reverted')
  })
})

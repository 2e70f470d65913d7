import { expect } from 'chai'
import type { Wallet } from 'ethers'
import type { Price } from '../../../domain/units.ts'
import { feedIdOf } from '../../../stack/deploy.ts'
import { SignedPriceOracle__factory } from '../../../typechain-types/factories/SignedPriceOracle__factory.ts'
import {
  addressOf,
  chain,
  type Exchange,
  perpetualExchange,
  signReport,
  wallet,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'

const DAY = 86_400
const PRICE = e18('50000') as Price

describe('SignedPriceOracle with a notice of one day', () => {
  let exchange: Exchange
  let feedId: string
  const [old, fresh, other] = ['old signer', 'fresh signer', 'other signer'].map(wallet) as [
    Wallet,
    Wallet,
    Wallet,
  ]
  const time = () => exchange.connection.networkHelpers.time
  const refused = (call: Promise<unknown>, error: string, ...args: unknown[]) =>
    expect(call)
      .to.be.revertedWithCustomError(exchange.oracle, error)
      .withArgs(...args)

  /** Sets one signer for the feed; returns the time from which that signer is valid, in milliseconds. */
  const hand = async (to: Wallet): Promise<number> => {
    await exchange.oracle.setFeed(feedId, [to.address], 1)
    return ((await time().latest()) + DAY) * 1000
  }
  const verify = (signer: Wallet, observedAt: number, price = PRICE) =>
    exchange.oracle.verify(
      feedId,
      price,
      observedAt,
      signReport(exchange, { price, observedAt, signers: [signer] }),
    )

  beforeEach(async () => {
    const loaded = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    feedId = feedIdOf(loaded.spec.marketId)
    const oracle = await new SignedPriceOracle__factory(loaded.admin).deploy(loaded.shared.access, DAY)
    const shared = { ...loaded.shared, oracle: addressOf({ address: await oracle.getAddress() }) }
    exchange = { ...loaded, shared, oracle: SignedPriceOracle__factory.connect(shared.oracle, loaded.admin) }
  })

  it('when a feed is new, reports before the end of the notice revert with FeedUnknown', async () => {
    const from = await hand(old)
    await refused(verify(old, from - 1), 'FeedUnknown', feedId)
    await verify(old, from)
    expect([...(await exchange.oracle.feedAt(feedId, from - 1))]).to.deep.equal([[], 0n])
    expect([...(await exchange.oracle.feedAt(feedId, from))]).to.deep.equal([[old.address], 1n])
    expect(await exchange.oracle.notice()).to.equal(BigInt(DAY))
  })
  it('when signers change, the observation time selects the signers, independently of the settlement time', async () => {
    await hand(old)
    await time().increase(2 * DAY)
    const from = await hand(fresh)
    const both = async () => {
      await verify(old, from - 1)
      await refused(verify(fresh, from - 1), 'SignerUnknown', feedId, fresh.address)
      await verify(fresh, from)
      await refused(verify(old, from), 'SignerUnknown', feedId, old.address)
    }
    await both()
    await time().increase(3 * DAY)
    await both()
  })
  it('when a change is announced, FeedSet states the time from which it applies', async () => {
    const sent = exchange.oracle.setFeed(feedId, [old.address], 1)
    await sent
    const from = ((await time().latest()) + DAY) * 1000
    await expect(sent).to.emit(exchange.oracle, 'FeedSet').withArgs(feedId, [old.address], 1, from)
  })
  it('when a second change replaces a pending one, the signers of the first never become valid', async () => {
    await hand(old)
    await time().increase(2 * DAY)
    const dropped = await hand(fresh)
    await time().increase(DAY / 2)
    const from = await hand(other)
    await refused(verify(fresh, dropped), 'SignerUnknown', feedId, fresh.address)
    await verify(old, from - 1)
    await verify(other, from)
  })
  it('when a third set is announced, reports from before the second set revert: its signers never signed for that time', async () => {
    await hand(old)
    await time().increase(2 * DAY)
    const from = await hand(fresh)
    await time().increase(2 * DAY)
    const last = await hand(other)
    for (const observedAt of [from - 1, from - DAY * 1000]) {
      for (const signer of [old, fresh, other])
        await refused(verify(signer, observedAt), 'ObservedTooEarly', feedId, from, observedAt)
      expect([...(await exchange.oracle.feedAt(feedId, observedAt))]).to.deep.equal([[], 0n])
    }
    await verify(fresh, from)
    await verify(fresh, last - 1)
    await verify(other, last)
  })
  it('when a third set is cancelled, reports from before the second set still revert', async () => {
    await hand(old)
    await time().increase(2 * DAY)
    const from = await hand(fresh)
    await time().increase(2 * DAY)
    await hand(other)
    await exchange.oracle.cancelFeed(feedId)
    await refused(verify(fresh, from - 1), 'FeedUnknown', feedId)
    await verify(fresh, from)
  })
  it('when a pending change is cancelled, the former signers stay valid and the cancelled ones never become valid', async () => {
    await hand(old)
    await time().increase(2 * DAY)
    const dropped = await hand(fresh)
    await expect(exchange.oracle.cancelFeed(feedId))
      .to.emit(exchange.oracle, 'FeedCancelled')
      .withArgs(feedId)
    await verify(old, dropped)
    await refused(verify(fresh, dropped), 'SignerUnknown', feedId, fresh.address)
    const from = await hand(other)
    await refused(verify(fresh, from), 'SignerUnknown', feedId, fresh.address)
    await verify(old, from - 1)
  })
  it('when no change is pending, cancelFeed reverts with NoChangePending', async () => {
    await refused(exchange.oracle.cancelFeed(feedId), 'NoChangePending', feedId)
    const from = await hand(old)
    await time().setNextBlockTimestamp(from / 1000)
    await refused(exchange.oracle.cancelFeed(feedId), 'NoChangePending', feedId)
  })
  it('when the caller is not the guardian, cancelFeed reverts with AccessManagedUnauthorized', async () => {
    const { oracle, operator } = exchange
    await refused(oracle.connect(operator).cancelFeed(feedId), 'AccessManagedUnauthorized', operator.address)
  })
  it('when there are more than 32 signers, it reverts with TooManySigners', async () => {
    const signers = Array.from({ length: 33 }, (_, index) => addressOf(wallet(`signer ${index}`))).sort()
    await refused(exchange.oracle.setFeed(feedId, signers, 1), 'TooManySigners', 32, 33)
    await exchange.oracle.setFeed(feedId, signers.slice(1), 32)
  })
  it('when deployed with a notice above 30 days, it reverts with DelayOutOfRange', async () => {
    const factory = new SignedPriceOracle__factory(exchange.admin)
    const deployment = factory.deploy(exchange.shared.access, 30 * DAY + 1)
    await refused(deployment, 'DelayOutOfRange', 30 * DAY + 1, 0, 30 * DAY)
  })
  it('accepts a reported price of zero: a closed session, or a binary event that did not happen', async () => {
    const from = await hand(old)
    await verify(old, from, 0n as Price)
  })
  it('when a report is signed for another feed, oracle or chain, it reverts with SignerUnknown', async () => {
    const from = await hand(old)
    const report = { price: PRICE, observedAt: from, signers: [old] }
    const verifyProof = (proof: string) => exchange.oracle.verify(feedId, PRICE, from, proof)
    const elsewhere = [
      signReport(exchange, { ...report, feedId: feedIdOf(99) }),
      signReport({ ...exchange, shared: { ...exchange.shared, oracle: exchange.shared.usdm } }, report),
      signReport({ ...exchange, spec: { ...exchange.spec, chainId: 4326n } }, report),
    ]
    for (const proof of elsewhere) {
      await expect(verifyProof(proof)).to.be.revertedWithCustomError(exchange.oracle, 'SignerUnknown')
    }
    await verifyProof(signReport(exchange, report))
  })
})

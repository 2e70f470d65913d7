import { expect } from 'chai'
import type { Price } from '../../../domain/units.ts'
import { feedIdOf } from '../../../stack/deploy.ts'
import {
  addressOf,
  chain,
  type Exchange,
  perpetualExchange,
  signReport,
  wallet,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'

const PRICE = e18('50000') as Price
const AT = 1_700_000_000_000

describe('setFeed and verify', () => {
  let exchange: Exchange
  let feedId: string
  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    feedId = feedIdOf(exchange.spec.marketId)
  })
  const report = { price: PRICE, observedAt: AT }
  const verify = (proof: string, feed = feedId) => exchange.oracle.verify(feed, PRICE, AT, proof)
  const refused = async (call: Promise<unknown>, error: string, ...args: unknown[]) => {
    const assertion = expect(call).to.be.revertedWithCustomError(exchange.oracle, error)
    await (args.length > 0 ? assertion.withArgs(...args) : assertion)
  }

  it('when any two of three signers sign in ascending order, it accepts the report', async () => {
    const [a, b, c] = exchange.oracleSigners
    for (const signers of [
      [a!, b!],
      [a!, c!],
      [b!, c!],
    ]) {
      await verify(signReport(exchange, { ...report, signers }))
    }
  })
  it('when signatures are in descending order or repeat a signer, it reverts with SignersNotAscending', async () => {
    const [a, b] = exchange.oracleSigners
    await refused(
      verify(signReport(exchange, { ...report, signers: [b!, a!] })),
      'SignersNotAscending',
      b!.address,
      a!.address,
    )
    await refused(
      verify(signReport(exchange, { ...report, signers: [a!, a!] })),
      'SignersNotAscending',
      a!.address,
      a!.address,
    )
  })
  it('when there are more or fewer signatures than the threshold, it reverts with ProofLengthWrong', async () => {
    await refused(
      verify(signReport(exchange, { ...report, signers: exchange.oracleSigners })),
      'ProofLengthWrong',
      130,
      195,
    )
    await refused(verify('0x'), 'ProofLengthWrong', 130, 0)
  })
  it('when a signer is not registered for the feed, it reverts with SignerUnknown', async () => {
    const signers = [wallet('x'), wallet('y')].sort((a, b) => (addressOf(a) < addressOf(b) ? -1 : 1))
    await refused(
      verify(signReport(exchange, { ...report, signers })),
      'SignerUnknown',
      feedId,
      signers[0]!.address,
    )
  })
  it('when a signature is malformed, it reverts with ReportSignatureInvalid', () =>
    refused(verify(`0x${'00'.repeat(130)}`), 'ReportSignatureInvalid', 0))
  it('when the feed is unknown, it reverts with FeedUnknown', () =>
    refused(verify(`0x${'00'.repeat(130)}`, feedIdOf(99)), 'FeedUnknown', feedIdOf(99)))

  it('when signers are replaced, the former ones revert with SignerUnknown', async () => {
    const [a] = exchange.oracleSigners
    await expect(exchange.oracle.setFeed(feedId, [a!.address], 1)).to.emit(exchange.oracle, 'FeedSet')
    await verify(signReport(exchange, { ...report, signers: [a!] }))
    expect([...(await exchange.oracle.feedAt(feedId, AT))]).to.deep.equal([[a!.address], 1n])
    await exchange.oracle.setFeed(feedId, [wallet('new').address], 1)
    await refused(verify(signReport(exchange, { ...report, signers: [a!] })), 'SignerUnknown')
  })
  it('when the threshold is zero or above the number of signers, setFeed reverts with ThresholdInvalid', async () => {
    await refused(exchange.oracle.setFeed(feedId, [wallet('x').address], 0), 'ThresholdInvalid', 1, 0)
    await refused(exchange.oracle.setFeed(feedId, [wallet('x').address], 2), 'ThresholdInvalid', 1, 2)
  })
  it('when signers are not ascending, setFeed reverts with SignersNotAscending', async () => {
    const [a, b] = exchange.oracleSigners
    await refused(
      exchange.oracle.setFeed(feedId, [b!.address, a!.address], 1),
      'SignersNotAscending',
      b!.address,
      a!.address,
    )
  })
  it('when the caller lacks the role, setFeed reverts with AccessManagedUnauthorized', async () => {
    const { oracle, operator } = exchange
    await refused(
      oracle.connect(operator).setFeed(feedId, [operator.address], 1),
      'AccessManagedUnauthorized',
      operator.address,
    )
  })
  it('returns the digest that signers sign', async () => {
    const [a] = exchange.oracleSigners
    const digest = await exchange.oracle.reportDigest(feedId, PRICE, AT)
    expect(a!.signingKey.sign(digest).serialized).to.equal(signReport(exchange, { ...report, signers: [a!] }))
  })
})

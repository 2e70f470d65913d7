import { expect } from 'chai'
import { toBeHex, ZeroAddress } from 'ethers'
import { AggregatorOracle__factory } from '../../../typechain-types/factories/AggregatorOracle__factory.ts'
import { ExchangeAccess__factory } from '../../../typechain-types/factories/ExchangeAccess__factory.ts'
import { FeedMock__factory } from '../../../typechain-types/factories/mocks/FeedMock__factory.ts'
import { addressOf, chain, wallet } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { randomOf } from '../../support/random.ts'

const DAY = 86_400
const FEED = toBeHex(7, 32)
const HEARTBEAT = 3_600
const GRACE = 600
const ANSWER = 50_000_12345678n
const PRICE = e18('50000.12345678')
/** Round 5 of phase 2, in the numbering of Chainlink feeds. */
const ROUND = (2n << 64n) + 5n
/** The time of its answer, in seconds. */
const AT = 1_800_000_000

async function deployed() {
  const connection = await chain()
  const [admin, unauthorized] = await connection.ethers.getSigners()
  if (!admin || !unauthorized) throw new Error('the test chain has too few accounts')
  const access = await new ExchangeAccess__factory(admin).deploy(admin, 0)
  const feed = await new FeedMock__factory(admin).deploy(8)
  const uptime = await new FeedMock__factory(admin).deploy(0)
  const factory = new AggregatorOracle__factory(admin)
  const oracle = await factory.deploy(access, 0, ZeroAddress, 0)
  await oracle.setFeed(FEED, feed, HEARTBEAT)
  const push = (
    round: bigint,
    change: { answer?: bigint; updatedAt?: number; answeredInRound?: bigint } = {},
  ) => feed.push(round, { answer: ANSWER, startedAt: AT, updatedAt: AT, answeredInRound: round, ...change })
  await push(ROUND)
  return { connection, admin, unauthorized, access, feed, uptime, factory, oracle, push }
}

describe('AggregatorOracle', () => {
  let at: Awaited<ReturnType<typeof deployed>>
  beforeEach(async () => {
    at = { ...(await (await chain()).networkHelpers.loadFixture(deployed)) }
  })
  const verify = (change: { price?: bigint; at?: number; round?: bigint; feedId?: string } = {}) =>
    at.oracle.verify(
      change.feedId ?? FEED,
      change.price ?? PRICE,
      change.at ?? AT * 1000,
      toBeHex(change.round ?? ROUND, 10),
    )
  const refused = (call: Promise<unknown>, error: string, ...args: unknown[]) =>
    expect(call)
      .to.be.revertedWithCustomError(at.oracle, error)
      .withArgs(...args)

  describe('given the latest round', () => {
    it('is valid from its answer until its heartbeat ends, to the millisecond', async () => {
      const [from, to] = [AT * 1000, (AT + HEARTBEAT) * 1000]
      await verify({ at: from })
      await verify({ at: to - 1 })
      await refused(verify({ at: from - 1 }), 'ObservedOutsideRound', ROUND, from, to, from - 1)
      await refused(verify({ at: to }), 'ObservedOutsideRound', ROUND, from, to, to)
    })
    it('accepts only the answer scaled exactly to 18 decimals', async () => {
      for (const wrong of [PRICE + 1n, PRICE - 1n, ANSWER, 0n])
        await refused(verify({ price: wrong }), 'AnswerDiffers', FEED, ROUND, PRICE, wrong)
      const { admin, oracle } = at
      for (const decimals of [0, 18]) {
        const feed = await new FeedMock__factory(admin).deploy(decimals)
        await feed.push(ROUND, { answer: ANSWER, startedAt: AT, updatedAt: AT, answeredInRound: ROUND })
        await oracle.setFeed(FEED, feed, HEARTBEAT)
        await verify({ price: ANSWER * 10n ** BigInt(18 - decimals) })
      }
    })
    it('when its answer is not positive, it reverts with AnswerNotPositive', async () => {
      for (const answer of [0n, -1n]) {
        await at.push(ROUND, { answer })
        await refused(verify({ price: 0n }), 'AnswerNotPositive', FEED, ROUND, answer)
      }
    })
    it('when it has no answer yet or was answered in an earlier round, it reverts with RoundIncomplete', async () => {
      await at.push(ROUND, { updatedAt: 0 })
      await refused(verify(), 'RoundIncomplete', FEED, ROUND)
      await at.push(ROUND, { answeredInRound: ROUND - 1n })
      await refused(verify(), 'RoundIncomplete', FEED, ROUND)
      await at.push(ROUND, { answeredInRound: ROUND + 1n })
      await verify()
    })
    it('when the round does not exist, it reverts with NoDataPresent of the feed', async () => {
      await expect(verify({ round: ROUND - 1n })).to.be.revertedWithCustomError(at.feed, 'NoDataPresent')
    })
  })

  describe('given a round followed by another', () => {
    const LATER = AT + 60
    it('is valid until the next round’s answer, also when verified later', async () => {
      await at.push(ROUND + 1n, { updatedAt: LATER })
      const to = LATER * 1000
      await verify({ at: to - 1 })
      await refused(verify({ at: to }), 'ObservedOutsideRound', ROUND, AT * 1000, to, to)
      await at.push(ROUND + 2n, { updatedAt: LATER + 60 })
      await verify({ at: to - 1 })
      await refused(verify({ at: to }), 'ObservedOutsideRound', ROUND, AT * 1000, to, to)
    })
    it('when rounds follow each other at any distance, each moment has at most one round', async () => {
      const random = randomOf(3)
      const rounds = Array.from({ length: 12 }, (_, index) => ROUND + BigInt(index))
      let updatedAt = AT
      const times = new Set<number>()
      for (const round of rounds) {
        // Also several rounds within a second, and one after the heartbeat has ended.
        updatedAt += [0, 1, 2, 3, HEARTBEAT + 1][random(5)] as number
        await at.push(round, { updatedAt, answer: ANSWER + round })
        for (const near of [-2_001, -2_000, -1, 0, 1, 1_999, 2_000]) times.add(updatedAt * 1000 + near)
      }
      for (const moment of times) {
        const priceOf = (round: bigint) => (ANSWER + round) * 10n ** 10n
        const valid = await Promise.all(
          rounds.map((round) =>
            verify({ round, price: priceOf(round), at: moment }).then(
              () => 1,
              () => 0,
            ),
          ),
        )
        expect(
          valid.reduce<number>((sum, one) => sum + one, 0),
          `${moment}`,
        ).to.be.at.most(1)
      }
    })
    it('when the heartbeat ends before the next round, it is valid until the heartbeat ends', async () => {
      await at.push(ROUND + 1n, { updatedAt: AT + HEARTBEAT + 1 })
      const to = (AT + HEARTBEAT) * 1000
      await refused(verify({ at: to }), 'ObservedOutsideRound', ROUND, AT * 1000, to, to)
    })
    it('when the next round belongs to a new phase, it reverts with RoundSuperseded because the end of validity is unknown', async () => {
      const phase3 = (3n << 64n) + 1n
      await at.push(phase3, { updatedAt: LATER })
      await refused(verify(), 'RoundSuperseded', ROUND, phase3)
      await verify({ round: phase3, at: LATER * 1000 })
    })
    it('when a new phase has started, a round of the former phase with a next round reverts with RoundSuperseded', async () => {
      const phase3 = (3n << 64n) + 1n
      await at.push(ROUND + 1n, { updatedAt: LATER })
      await at.push(phase3, { updatedAt: LATER })
      await refused(verify(), 'RoundSuperseded', ROUND, phase3)
      await refused(verify({ round: ROUND + 1n, at: LATER * 1000 }), 'RoundSuperseded', ROUND + 1n, phase3)
    })
    it('when the former phase’s aggregator still answers, its newer rounds revert with RoundSuperseded', async () => {
      const phase3 = (3n << 64n) + 1n
      await at.push(ROUND + 1n, { updatedAt: LATER + 30 })
      await at.push(ROUND + 2n, { updatedAt: LATER + 60 })
      await at.push(phase3, { updatedAt: LATER })
      await refused(
        verify({ round: ROUND + 1n, at: (LATER + 30) * 1000 }),
        'RoundSuperseded',
        ROUND + 1n,
        phase3,
      )
      await verify({ round: phase3, at: (LATER + 30) * 1000 })
    })
    it('when the next round has no answer and a later one is the latest, it reverts with RoundSuperseded', async () => {
      await at.push(ROUND + 1n, { updatedAt: 0 })
      await at.push(ROUND + 2n, { updatedAt: LATER })
      await refused(verify(), 'RoundSuperseded', ROUND, ROUND + 2n)
    })
  })

  describe('given an uptime feed', () => {
    const RESUMED = AT + 100
    const status = (down: bigint, startedAt: number) =>
      at.uptime.push(1, { answer: down, startedAt, updatedAt: startedAt, answeredInRound: 1 })
    beforeEach(async () => {
      at.oracle = await at.factory.deploy(at.access, 0, at.uptime, GRACE)
      await at.oracle.setFeed(FEED, at.feed, HEARTBEAT)
    })
    it('when the sequencer is down or the uptime feed has no answer, it reverts with SequencerDown', async () => {
      await refused(verify(), 'SequencerDown')
      await status(1n, RESUMED)
      await refused(verify({ at: (RESUMED + GRACE) * 1000 }), 'SequencerDown')
    })
    it('when the sequencer is up again, it reverts with SequencerResuming until the grace has passed', async () => {
      await status(0n, RESUMED)
      const from = (RESUMED + GRACE) * 1000
      await refused(verify({ at: from - 1 }), 'SequencerResuming', from, from - 1)
      await verify({ at: from })
      expect([...(await at.oracle.uptime())]).to.deep.equal([await at.uptime.getAddress(), BigInt(GRACE)])
    })
  })

  it('when the proof is not a 10-byte round number, it reverts with ProofLengthWrong', async () => {
    await refused(at.oracle.verify(FEED, PRICE, AT * 1000, '0x'), 'ProofLengthWrong', 10, 0)
    await refused(at.oracle.verify(FEED, PRICE, AT * 1000, toBeHex(ROUND, 32)), 'ProofLengthWrong', 10, 32)
  })
  it('when the feed is unknown, it reverts with FeedUnknown', () =>
    refused(verify({ feedId: toBeHex(8, 32) }), 'FeedUnknown', toBeHex(8, 32)))

  describe('setFeed and cancelFeed', () => {
    it('when a source is set, it emits FeedSet and returns the source for any observation time', async () => {
      const { oracle, feed } = at
      const address = await feed.getAddress()
      await expect(oracle.setFeed(FEED, feed, HEARTBEAT))
        .to.emit(oracle, 'FeedSet')
        .withArgs(FEED, address, HEARTBEAT, 8, 0)
      expect([...(await oracle.sourceAt(FEED, 0))]).to.deep.equal([address, BigInt(HEARTBEAT), 8n, 0n])
    })
    it('when the source has no code, more than 18 decimals or a heartbeat out of range, it reverts with SourceInvalid', async () => {
      const { oracle, feed, admin } = at
      const withoutCode = wallet('no code').address
      await refused(oracle.setFeed(FEED, withoutCode, 1), 'SourceInvalid', withoutCode, 1, 0)
      const fine = await new FeedMock__factory(admin).deploy(19)
      await refused(oracle.setFeed(FEED, fine, 1), 'SourceInvalid', await fine.getAddress(), 1, 19)
      for (const heartbeat of [0, 2 * DAY + 1])
        await refused(
          oracle.setFeed(FEED, feed, heartbeat),
          'SourceInvalid',
          await feed.getAddress(),
          heartbeat,
          8,
        )
      await oracle.setFeed(FEED, feed, 2 * DAY)
    })
    it('when a notice applies, the observation time selects the source, and the pending change can be cancelled once', async () => {
      const { factory, access, feed, admin, connection } = at
      const { time } = connection.networkHelpers
      at.oracle = await factory.deploy(access, DAY, ZeroAddress, 0)
      await time.increaseTo(AT - 3 * DAY)
      await at.oracle.setFeed(FEED, feed, HEARTBEAT)
      await time.increaseTo(AT - DAY + 600)
      const next = await new FeedMock__factory(admin).deploy(8)
      await next.push(1, { answer: 2n * ANSWER, startedAt: AT, updatedAt: AT, answeredInRound: 1 })
      await at.oracle.setFeed(FEED, next, HEARTBEAT)
      const { activeFrom } = await at.oracle.sourceAt(FEED, 2n ** 48n)
      await verify({ at: Number(activeFrom) - 1 })
      await verify({ at: Number(activeFrom), price: 2n * PRICE, round: 1n })

      await at.oracle.cancelFeed(FEED)
      await verify({ at: Number(activeFrom) })
      await refused(at.oracle.cancelFeed(FEED), 'NoChangePending', FEED)
      expect(await at.oracle.notice()).to.equal(BigInt(DAY))
    })
    it('when a third source is announced, reports from before the second revert: it had no answer for that time', async () => {
      const { factory, access, feed, connection } = at
      const { time } = connection.networkHelpers
      at.oracle = await factory.deploy(access, DAY, ZeroAddress, 0)
      await time.increaseTo(AT - 5 * DAY)
      await at.oracle.setFeed(FEED, feed, HEARTBEAT)
      await time.increaseTo(AT - DAY - 10)
      await at.oracle.setFeed(FEED, feed, HEARTBEAT)
      const { activeFrom } = await at.oracle.sourceAt(FEED, 2n ** 48n)
      const from = Number(activeFrom)
      await time.increaseTo(from / 1000 + 60)
      await verify({ at: AT * 1000 })
      await at.push(ROUND - 1n, { updatedAt: AT - 1_000, answeredInRound: ROUND - 1n })
      await at.push(ROUND)
      await verify({ at: from - 1, round: ROUND - 1n })
      await at.oracle.setFeed(FEED, feed, HEARTBEAT)
      await refused(verify({ at: from - 1, round: ROUND - 1n }), 'ObservedTooEarly', FEED, from, from - 1)
      await verify({ at: from, round: ROUND - 1n })
      expect([...(await at.oracle.sourceAt(FEED, from - 1))]).to.deep.equal([ZeroAddress, 0n, 0n, 0n])
    })
    it('when the caller lacks the role, it reverts with AccessManagedUnauthorized', async () => {
      const { oracle, feed, unauthorized } = at
      for (const call of [
        () => oracle.connect(unauthorized).setFeed(FEED, feed, 1),
        () => oracle.connect(unauthorized).cancelFeed(FEED),
      ])
        await refused(call(), 'AccessManagedUnauthorized', unauthorized.address)
    })
  })

  it('when deployed with a grace above 1 day or a notice above 30 days, it reverts with DelayOutOfRange', async () => {
    const { factory, access } = at
    const none = ZeroAddress
    await refused(factory.deploy(access, 0, none, DAY + 1), 'DelayOutOfRange', DAY + 1, 0, DAY)
    await refused(factory.deploy(access, 30 * DAY + 1, none, 0), 'DelayOutOfRange', 30 * DAY + 1, 0, 30 * DAY)
    expect(addressOf({ address: (await at.oracle.uptime()).feed })).to.equal(none)
  })
})

/** The source of each moment over random sequences of announcements, cancellations and times, and its only price. */
import { expect } from 'chai'
import { toBeHex, ZeroAddress } from 'ethers'
import { AggregatorOracle__factory } from '../../../typechain-types/factories/AggregatorOracle__factory.ts'
import { ExchangeAccess__factory } from '../../../typechain-types/factories/ExchangeAccess__factory.ts'
import { FeedMock__factory } from '../../../typechain-types/factories/mocks/FeedMock__factory.ts'
import { chain } from '../../support/exchange.ts'
import { errorOf } from '../../support/parity.ts'
import { randomOf } from '../../support/random.ts'
import { AnnouncedSets } from '../support/announced-sets.ts'

const STEPS = 40
const ROUNDS = 90
const DAY = 86_400
const FEED = toBeHex(7, 32)

/** Feeds with one round a day, each with prices of its own. */
async function deployed() {
  const connection = await chain()
  const [admin] = await connection.ethers.getSigners()
  if (!admin) throw new Error('the test chain has no account')
  const access = await new ExchangeAccess__factory(admin).deploy(admin, 0)
  const oracle = await new AggregatorOracle__factory(admin).deploy(access, DAY, ZeroAddress, 0)
  const start = await connection.networkHelpers.time.latest()
  const feeds = await Promise.all(
    [0, 1, 2].map(async () => {
      const feed = await new FeedMock__factory(admin).deploy(18)
      return { feed, address: await feed.getAddress() }
    }),
  )
  for (const [index, { feed }] of feeds.entries())
    for (let round = 1; round <= ROUNDS; round++) {
      const updatedAt = start + round * DAY
      const answer = {
        answer: priceOf(index, round),
        startedAt: updatedAt,
        updatedAt,
        answeredInRound: round,
      }
      await feed.push(round, answer)
    }
  return { connection, oracle, start, addresses: feeds.map(({ address }) => address) }
}

const priceOf = (feed: number, round: number): bigint => BigInt(1_000 * (feed + 1) + round)

describe('AggregatorOracle over a sequence of announcements', function () {
  this.timeout(300_000)

  for (const seed of [1, 2]) {
    it(`when sources are announced, replaced and cancelled at random times, seed ${seed}, each moment has one source and price`, async () => {
      const { connection, oracle, start, addresses } = await (await chain()).networkHelpers.loadFixture(
        deployed,
      )
      const { time } = connection.networkHelpers
      const random = randomOf(seed)
      const model = new AnnouncedSets<number>(DAY * 1000)
      /** The only price that was ever valid at a moment that has passed. */
      const prices = new Map<number, bigint>()
      const seen = new Map<string, number>()
      const count = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1)

      for (let step = 0; step < STEPS; step++) {
        const next = (await time.latest()) + 1
        const edge = Math.floor((model.edges().at(-1) ?? 0) / 1000)
        const wanted = [next, next + random(DAY), edge - 1 + random(3), next + 2 * DAY][random(4)] as number
        const now = Math.max(next, wanted)
        await time.setNextBlockTimestamp(now)
        if (random(3) > 0) {
          const source = random(addresses.length)
          await oracle.setFeed(FEED, addresses[source] as string, DAY)
          model.announce(source, now * 1000)
          count('announced')
        } else {
          const error = await errorOf(oracle.cancelFeed(FEED))
          // A rejected transaction mines no block.
          if (error !== null) await time.increaseTo(now)
          expect(error, `step ${step}`).to.equal(model.cancel(now * 1000) ? null : 'NoChangePending')
          count(error ?? 'cancelled')
        }

        const near = model.edges().slice(-3)
        const drawn = [now * 1000, (now - random(5 * DAY)) * 1000]
        for (const moment of [...near.flatMap((from) => [from - 1, from]), ...drawn]) {
          const round = Math.floor((moment / 1000 - start) / DAY)
          if (round < 1) continue
          const at = model.at(moment)
          for (const source of addresses.keys()) {
            const price = priceOf(source, round)
            const found = await errorOf(oracle.verify(FEED, price, moment, toBeHex(round, 10)))
            const expected = source === at ? null : 'AnswerDiffers'
            expect(found, `step ${step}, moment ${moment}`).to.equal(typeof at === 'string' ? at : expected)
            count(found ?? 'verified')
            if (found !== null || moment > now * 1000) continue
            expect(price, `moment ${moment} has a second price`).to.equal(prices.get(moment) ?? price)
            prices.set(moment, price)
          }
          const { aggregator } = await oracle.sourceAt(FEED, moment)
          expect(aggregator).to.equal(typeof at === 'string' ? ZeroAddress : addresses[at])
        }
      }
      for (const what of [
        ...['announced', 'cancelled', 'NoChangePending', 'verified', 'FeedUnknown', 'ObservedTooEarly'],
        'AnswerDiffers',
      ])
        expect(seen.get(what) ?? 0, what).to.be.greaterThan(0)
    })
  }
})

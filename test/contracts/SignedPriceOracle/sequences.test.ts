/** The signers of each moment over random sequences of announcements, cancellations and times. */
import { expect } from 'chai'
import type { Wallet } from 'ethers'
import type { Price } from '../../../domain/units.ts'
import { feedIdOf } from '../../../stack/deploy.ts'
import { SignedPriceOracle__factory } from '../../../typechain-types/factories/SignedPriceOracle__factory.ts'
import {
  addressOf,
  chain,
  type Exchange,
  nextSecond,
  perpetualExchange,
  signReport,
  wallet,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { errorOf } from '../../support/parity.ts'
import { randomOf } from '../../support/random.ts'
import { AnnouncedSets } from '../support/announced-sets.ts'

const STEPS = 40
const DAY = 86_400
const PRICE = e18('50000') as Price
const WALLETS = ['signer a', 'signer b', 'signer c', 'signer d']
  .map(wallet)
  .sort((a, b) => (addressOf(a) < addressOf(b) ? -1 : 1))

interface SignerSet {
  readonly signers: readonly Wallet[]
  readonly threshold: number
}

describe('SignedPriceOracle over a sequence of announcements', function () {
  this.timeout(300_000)
  let exchange: Exchange
  let feedId: string

  beforeEach(async () => {
    const loaded = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    feedId = feedIdOf(loaded.spec.marketId)
    const oracle = await new SignedPriceOracle__factory(loaded.admin).deploy(loaded.shared.access, DAY)
    const shared = { ...loaded.shared, oracle: addressOf({ address: await oracle.getAddress() }) }
    exchange = { ...loaded, shared, oracle: SignedPriceOracle__factory.connect(shared.oracle, loaded.admin) }
  })

  function drawSet(random: (end: number) => number): SignerSet {
    const mask = 1 + random(15)
    const signers = WALLETS.filter((_, index) => (mask >> index) & 1)
    return { signers, threshold: 1 + random(signers.length) }
  }

  /** Null if the first signers of the set can report for the moment, otherwise the error. */
  const verify = ({ signers, threshold }: SignerSet, observedAt: number): Promise<string | null> => {
    const report = { price: PRICE, observedAt, signers: signers.slice(0, threshold) }
    return errorOf(exchange.oracle.verify(feedId, PRICE, observedAt, signReport(exchange, report)))
  }

  function expectedOf(proof: SignerSet, at: SignerSet | 'FeedUnknown' | 'ObservedTooEarly'): string | null {
    if (typeof at === 'string') return at
    if (proof.threshold !== at.threshold) return 'ProofLengthWrong'
    const areKnown = proof.signers.slice(0, proof.threshold).every((each) => at.signers.includes(each))
    return areKnown ? null : 'SignerUnknown'
  }

  for (const seed of [1, 2]) {
    it(`when sets are announced, replaced and cancelled at random times, seed ${seed}, each moment has one set`, async () => {
      const random = randomOf(seed)
      const { time } = exchange.connection.networkHelpers
      const model = new AnnouncedSets<SignerSet>(DAY * 1000)
      const proofs: SignerSet[] = [drawSet(random)]
      /** The only set that ever verified a moment that has passed. */
      const verifiedBy = new Map<number, string>()
      const seen = new Map<string, number>()
      const count = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1)
      const textOf = ({ signers, threshold }: SignerSet) =>
        `${threshold} of ${signers.map(({ address }) => address).join(', ')}`

      for (let step = 0; step < STEPS; step++) {
        const next = await nextSecond(exchange)
        const edge = Math.floor((model.edges().at(-1) ?? 0) / 1000)
        const wanted = [next, next + random(DAY), edge - 1 + random(3), next + 2 * DAY][random(4)] as number
        const now = Math.max(next, wanted)
        await time.setNextBlockTimestamp(now)
        if (random(3) > 0) {
          const set = drawSet(random)
          proofs.push(set)
          await exchange.oracle.setFeed(
            feedId,
            set.signers.map(({ address }) => address),
            set.threshold,
          )
          model.announce(set, now * 1000)
          count('announced')
        } else {
          const error = await errorOf(exchange.oracle.cancelFeed(feedId))
          // A rejected transaction mines no block.
          if (error !== null) await time.increaseTo(now)
          expect(error, `step ${step}`).to.equal(model.cancel(now * 1000) ? null : 'NoChangePending')
          count(error ?? 'cancelled')
        }

        const near = model.edges().slice(-3)
        const drawn = [now * 1000, (now - random(5 * DAY)) * 1000, 0]
        for (const moment of [...near.flatMap((from) => [from - 1, from]), ...drawn]) {
          const at = model.at(moment)
          for (const proof of [...proofs.slice(-4), ...(typeof at === 'string' ? [] : [at])]) {
            const found = await verify(proof, moment)
            expect(found, `step ${step}, moment ${moment}`).to.equal(expectedOf(proof, at))
            count(found ?? 'verified')
          }
          const [signers, threshold] = await exchange.oracle.feedAt(feedId, moment)
          expect([[...signers], threshold]).to.deep.equal(
            typeof at === 'string'
              ? [[], 0n]
              : [at.signers.map(({ address }) => address), BigInt(at.threshold)],
          )
          if (typeof at === 'string' || moment > now * 1000) continue
          expect(textOf(at), `moment ${moment} has a second set`).to.equal(
            verifiedBy.get(moment) ?? textOf(at),
          )
          verifiedBy.set(moment, textOf(at))
        }
      }
      for (const what of [
        ...['announced', 'cancelled', 'NoChangePending', 'verified', 'FeedUnknown', 'ObservedTooEarly'],
        ...['SignerUnknown', 'ProofLengthWrong'],
      ])
        expect(seen.get(what) ?? 0, what).to.be.greaterThan(0)
    })
  }
})

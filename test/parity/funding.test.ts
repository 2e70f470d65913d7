import { expect } from 'chai'
import {
  accrue,
  FULL_SWING,
  type FundingRate,
  fundingBounds,
  fundingCapAt,
  HOUR,
  NO_RATE,
  setFunding,
} from '../../domain/prices/funding.ts'
import { proposedRate } from '../../domain/prices/funding-plan.ts'
import {
  type FundingIndex,
  type HourlyFunding,
  type Millis,
  ONE,
  type Price,
  type Rate,
} from '../../domain/units.ts'
import type { OwnerHarness } from '../../typechain-types/mocks/OwnerHarness.ts'
import { refusalOf } from '../support/errors.ts'
import { fieldsOf } from '../support/exchange.ts'
import { e18, perpetual } from '../support/markets.ts'
import { ownerHarness } from '../support/parity.ts'
import { randomOf } from '../support/random.ts'

const RUNS = 200
const MILLIONTH = 10n ** 12n
const START = 1_700_000_000_000

describe('parity: funding', () => {
  let rules: OwnerHarness
  before(async () => {
    rules = await ownerHarness()
  })

  const draw = (random: (end: number) => number): FundingRate => {
    const length = [0, 1, random(HOUR), HOUR][random(4)] as number
    const scale = 10n ** BigInt(random(18))
    return {
      rate: (BigInt(random(2 ** 31) - 2 ** 30) * scale) as HourlyFunding,
      validFrom: START as Millis,
      validUntil: (START + length) as Millis,
    }
  }

  it(`accrues ${RUNS} indices alike, for any overlap of interval and validity`, async () => {
    const random = randomOf(1)
    for (let run = 0; run < RUNS; run++) {
      const running = draw(random)
      const { validFrom, validUntil } = running
      const near = (moment: number) => moment - 2 + random(5)
      const from = [near(validFrom), near(validUntil), validFrom + random(HOUR)][random(3)] as Millis
      const to = [near(validFrom), near(validUntil), from, from + random(2 * HOUR)][random(4)] as Millis
      const index = BigInt(random(2_000_001) - 1_000_000) as FundingIndex
      const expected = accrue(index, running, from, to)
      expect(await rules.indexAt(running, index, from, to)).to.equal(expected)
      if (expected >= 1n << 95n || expected < -(1n << 95n)) continue
      const before = { oraclePrice: 5, observedAt: 6, fundingIndex: index, funded: true, changePending: true }
      const { fundingIndex, funded, ...rest } = fieldsOf(await rules.accrue(running, before, from, to))
      // An expired rate is cleared.
      expect([fundingIndex, funded]).to.deep.equal([expected, to < validUntil])
      expect(rest).to.deep.equal({ oraclePrice: 5n, observedAt: 6n, changePending: true })
    }
  }).timeout(60_000)

  it('bounds the index by its field, to the wei', async () => {
    const end = 1n << 95n
    const grownIn = (rate: bigint, time: number) => (rate * BigInt(time)) / BigInt(HOUR)
    for (const time of [1, 1234, HOUR]) {
      for (const rate of [10n ** 20n, -(10n ** 20n), 7n, 0n]) {
        const grown = grownIn(rate, time)
        for (const last of [end - 1n, end, end + 1n, 1n - end, -end, -end - 1n]) {
          const index = (last - grown) as FundingIndex
          const asOf = START as Millis
          const running: FundingRate = {
            rate: rate as HourlyFunding,
            validFrom: asOf,
            validUntil: (asOf + time) as Millis,
          }
          expect(accrue(index, running, asOf, running.validUntil)).to.equal(last)
          const fits = last < end && last > -end
          expect(await refusalOf(rules.requireRoom(index, rate, time))).to.equal(
            fits ? null : `FundingIndexOutOfRange(${index})`,
          )
          const market = { ...perpetual, fundingCap: ONE as Rate }
          const context = {
            running: { ...running, rate: 0n as HourlyFunding },
            index,
            oracle: e18('1000000') as Price,
          }
          const late = (asOf + FULL_SWING) as Millis
          const update = { asOf: late, rate: running.rate, validUntil: (late + time) as Millis }
          const verdict = setFunding(market, update, { ...context, sessionEnd: null })
          if (verdict.ok || verdict.refusal.code === 'INDEX_OUT_OF_RANGE') expect(verdict.ok).to.equal(fits)
        }
      }
    }
  })

  it(`bounds ${RUNS} rates alike, at any distance from the last rate, and accepts every rate that the keeper proposes`, async () => {
    const random = randomOf(2)
    for (let run = 0; run < RUNS; run++) {
      const spec = { ...perpetual, fundingCap: (BigInt(random(40_001)) * MILLIONTH) as Rate }
      const oracle = (BigInt(1 + random(2 ** 31)) * 10n ** BigInt(random(15)) + BigInt(random(999))) as Price
      const cap = fundingCapAt(spec, oracle)
      expect(await rules.capAt(spec.fundingCap / MILLIONTH, oracle, spec.step)).to.equal(cap)
      const share = BigInt(random(2401) - 1200)
      const rate = [(cap * share) / 1000n, cap, -cap, cap + 1n, -cap - 1n, 0n][random(6)] as HourlyFunding
      const drawn: FundingRate = { ...draw(random), rate }
      const last = random(10) === 0 ? NO_RATE : drawn
      const swing = FULL_SWING - 2 + random(5)
      const ends = last.validUntil - last.validFrom - 1 + random(3)
      const elapsed = Math.max(0, [0, 1, swing, ends, random(2 * HOUR)][random(5)] as number)
      const asOf = (last.validFrom + elapsed) as Millis
      const { lowest, highest } = fundingBounds(spec, last, oracle, asOf)
      const [low, high] = await rules.bounds(last, cap, asOf)
      expect([low, high]).to.deep.equal([lowest, highest])
      const premium = (BigInt(random(2 ** 31) - 2 ** 30) * 10n ** BigInt(random(9))) as Rate
      const proposed = proposedRate(spec, last, premium, oracle, asOf)
      expect(proposed >= low && proposed <= high, 'the rate that the keeper proposes').to.equal(true)
    }
  }).timeout(60_000)
})

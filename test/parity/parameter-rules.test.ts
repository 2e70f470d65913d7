/** The rules for parameters in domain/ and on the chain: random parameters around every bound. */
import { expect } from 'chai'
import { parameterRefusals } from '../../domain/market/parameter-rules.ts'
import type { MarketParameters } from '../../domain/market/parameters.ts'
import type { Millis, Rate } from '../../domain/units.ts'
import { binaryExchange, nextSecond, perpetualExchange } from '../support/exchange.ts'
import { errorOf } from '../support/parity.ts'
import { randomOf } from '../support/random.ts'

const MILLIONTH = 10n ** 12n
const DAY_MS = 86_400_000
const ROUNDS = 250

describe('parity: rules for parameters', function () {
  this.timeout(300_000)

  for (const fixture of [perpetualExchange, binaryExchange]) {
    it(`when parameters of ${fixture.name} are random around their bounds, both accept the same ones`, async () => {
      const { trader, admin, spec, connection } = await fixture()
      const random = randomOf(7)
      const pick = <Value>(...values: Value[]): Value => values[random(values.length)] as Value
      const millionths = (...values: number[]): Rate => (BigInt(pick(...values)) * MILLIONTH) as Rate
      const outcomes = { accepted: 0, rejected: 0 }
      for (let round = 0; round < ROUNDS; round++) {
        const maxLeverage = pick(1, 2, 5, 10, 20, 127)
        const mmr = pick(0, 1, 5_000, 10_000, 22_500)
        const next: MarketParameters = {
          maxLeverage,
          mmr: (BigInt(mmr) * MILLIONTH) as Rate,
          imr: millionths(
            mmr + 7_499,
            mmr + 7_500,
            mmr + 7_501,
            Math.floor(1_000_000 / maxLeverage),
            Math.floor(1_000_000 / maxLeverage) + 1,
          ),
          mtbLong: millionths(0, 50_000, 1_000_000, 1_000_001),
          mtbShort: millionths(0, 50_000, 999_999, 1_000_000),
          takerFee: millionths(0, 500, 50_000, 50_001),
          makerFee: millionths(0, 500, 501),
          fundingCap: millionths(0, 0, 40_000, 40_001),
          reports: {
            maxAge: pick(0, 1, 10_000, 60_000, 60_001) as Millis,
            moveBase: BigInt(pick(0, 100_000, 1_000_000, 1_000_001)),
            // A binary market needs 500 with a base of 0.1, and 556 without one.
            moveSlope: BigInt(pick(0, 499, 500, 555, 556, 20_000, 1_000_000, 1_000_001)),
            moveWindow: pick(999, 1_000, 60_000, 60_001) as Millis,
          },
        }
        const { reports, ...rates } = next
        const struct = {
          ...{ imr: rates.imr / MILLIONTH, mmr: rates.mmr / MILLIONTH, maxLeverage, mode: 0 },
          ...{ mtbLong: rates.mtbLong / MILLIONTH, mtbShort: rates.mtbShort / MILLIONTH },
          ...{ makerFee: rates.makerFee / MILLIONTH, takerFee: rates.takerFee / MILLIONTH },
          fundingCap: rates.fundingCap / MILLIONTH,
          ...{ reportMaxAge: reports?.maxAge ?? 0, moveWindow: reports?.moveWindow ?? 0 },
          ...{ moveBase: reports?.moveBase ?? 0n, moveSlope: reports?.moveSlope ?? 0n },
        }
        const from = (await nextSecond({ connection })) * 1000 + DAY_MS + 10_000
        const error = await errorOf(trader.connect(admin).scheduleParameters.staticCall(struct, from))
        const refusals = parameterRefusals(next, spec.kind)
        expect(error, JSON.stringify(refusals)).to.equal(refusals.length === 0 ? null : 'ParametersInvalid')
        outcomes[error === null ? 'accepted' : 'rejected']++
      }
      expect(outcomes.accepted).to.be.greaterThan(0)
      expect(outcomes.rejected).to.be.greaterThan(0)
    })
  }
})

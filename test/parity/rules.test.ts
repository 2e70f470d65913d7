import { expect } from 'chai'
import { priceBand } from '../../domain/market/band.ts'
import { feeOf, fillFee } from '../../domain/market/fees.ts'
import { type MarketSpec, oneInTicks } from '../../domain/market/market.ts'
import { ONE, type Price, type Rate, type Steps, type Ticks } from '../../domain/units.ts'
import { parametersOf } from '../../stack/deploy.ts'
import type { LibHarness } from '../../typechain-types/mocks/LibHarness.ts'
import { markets } from '../support/markets.ts'
import { harness } from '../support/parity.ts'
import { randomOf } from '../support/random.ts'

const RUNS = 150
const MILLIONTH = 10n ** 12n

describe('parity: fees, band', () => {
  let rules: LibHarness
  before(async () => {
    rules = await harness()
  })

  const topOf = (spec: MarketSpec): number =>
    spec.kind === 'binary_future' ? oneInTicks(spec) - 1 : 10_000_000

  it('rounds the lower edge of the band up to the wei and leaves at least one tick at any price', async () => {
    const [spec] = markets as [MarketSpec]
    const tick = MILLIONTH
    const unit = 1_000_000n * tick
    const short = 99_999n
    const parameters = { ...parametersOf(spec), mtbShort: short, mtbLong: 0n }
    // The price at which the edge lies `rest` beyond a whole number of ticks: the factor has an inverse, as neither 2 nor 5 divides it.
    const factor = 1_000_000n - short
    let inverse = factor
    for (let turn = 0; turn < 6; turn++) inverse = (inverse * (2n - factor * inverse)) % unit
    const priceAt = (rest: bigint): bigint => ((((rest * inverse) % unit) + unit) % unit) + unit
    for (const rest of [0n, 1n, 2n, unit - 1n]) {
      const oracle = priceAt(rest)
      expect((oracle * factor) % unit).to.equal(rest)
      const [lowest] = await rules.band(oracle, tick, parameters, false)
      expect(lowest, String(rest)).to.equal((oracle * factor) / unit + (rest === 0n ? 0n : 1n))
    }
    expect(await rules.band(1n, tick, parameters, false)).to.deep.equal([1n, 1n])
  })

  for (const spec of markets) {
    it(`${spec.kind}: computes ${RUNS} fees alike, and the fee of the parts is the sum of their fees`, async () => {
      const random = randomOf(100 + spec.marketId)
      for (let run = 0; run < RUNS; run++) {
        const price = (1 + random(topOf(spec))) as Ticks
        const rate = (BigInt(random(50_001)) * MILLIONTH) as Rate
        const [maker, taker] = [random(1_000_000) as Steps, random(1_000_000) as Steps]
        const perStep = await rules.feePerStep(
          spec.kind === 'binary_future',
          BigInt(price) * spec.tick,
          spec.step,
          (BigInt(price) * spec.tick * spec.step) / ONE,
          rate / MILLIONTH,
        )
        expect(feeOf(spec, price, maker, rate)).to.equal(perStep * BigInt(maker))
        const both = fillFee(spec, price, { maker, taker }, { makerFee: rate, takerFee: rate })
        expect(both).to.equal(feeOf(spec, price, (maker + taker) as Steps, rate))
      }
    })

    it(`${spec.kind}: computes ${RUNS} bands alike`, async () => {
      const random = randomOf(200 + spec.marketId)
      const isBinary = spec.kind === 'binary_future'
      for (let run = 0; run < RUNS; run++) {
        // Half of them are narrower than a tick: then the ticks around the oracle price are the band.
        const share = (end: number) => (BigInt(random(random(2) === 0 ? 3 : end)) * MILLIONTH) as Rate
        const given: MarketSpec = { ...spec, mtbLong: share(1_000_001), mtbShort: share(1_000_000) }
        // On a tick, one wei beside it, and anywhere.
        const beside = [0n, 1n, spec.tick - 1n, BigInt(random(1000)) * (spec.tick / 1000n)][
          random(4)
        ] as bigint
        const oracle = (BigInt(1 + random(topOf(spec))) * spec.tick + beside) as Price
        const { lo, hi } = priceBand(given, oracle)
        const [lowest, highest] = await rules.band(oracle, spec.tick, parametersOf(given), isBinary)
        // A settlement record's price ends at 2^40 ticks, that of domain/ at the safe integers.
        expect([Number(lowest), Number(highest)]).to.deep.equal([lo, hi])
      }
    })
  }
})

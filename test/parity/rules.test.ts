import { expect } from 'chai'
import { getBytes, recoverAddress, verifyMessage } from 'ethers'
import { priceBand } from '../../domain/band.ts'
import { feeOf, fillFee } from '../../domain/fees.ts'
import { toHex } from '../../domain/hex.ts'
import { type MarketSpec, oneInTicks } from '../../domain/market.ts'
import { isMarketType, mustReduceOnly, ORDER_TYPES, type Order } from '../../domain/order.ts'
import { domainSeparator, hashOrder } from '../../domain/order-hash.ts'
import { ONE, type Price, type Rate, type Seconds, type Steps, type Ticks } from '../../domain/units.ts'
import { parametersOf } from '../../stack/deploy.ts'
import type { LibHarness } from '../../typechain-types/mocks/LibHarness.ts'
import { keccak, signOrder, wallet } from '../support/exchange.ts'
import { markets } from '../support/markets.ts'
import { harness, orderStruct, randomOf, termsStruct } from '../support/parity.ts'

const RUNS = 150
const MILLIONTH = 10n ** 12n

describe('parity: fees, band, order hash', () => {
  let rules: LibHarness
  before(async () => {
    rules = await harness()
  })

  const topOf = (spec: MarketSpec): number =>
    spec.kind === 'binary_future' ? oneInTicks(spec) - 1 : 10_000_000

  for (const spec of markets) {
    it(`${spec.kind}: ${RUNS} fees, and the fee of parts is the sum of their fees`, async () => {
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

    it(`${spec.kind}: ${RUNS} bands`, async () => {
      const random = randomOf(200 + spec.marketId)
      const isBinary = spec.kind === 'binary_future'
      for (let run = 0; run < RUNS; run++) {
        // Half of them narrower than a tick: then the ticks around the oracle price are the band.
        const share = (end: number) => (BigInt(random(random(2) === 0 ? 3 : end)) * MILLIONTH) as Rate
        const given: MarketSpec = { ...spec, mtbLong: share(1_000_001), mtbShort: share(1_000_000) }
        const oracle = (1n +
          BigInt(random(topOf(spec))) * spec.tick +
          BigInt(random(1000)) * (spec.tick / 1000n)) as Price
        const { lo, hi } = priceBand(given, oracle)
        const [lowest, highest] = await rules.band(oracle, spec.tick, parametersOf(given), isBinary)
        // The record of settlement ends at 2^40 ticks, the domain at the safe integers.
        expect([Number(lowest), Number(highest)]).to.deep.equal([lo, hi])
      }
    })
  }

  it(`${RUNS} digests and signers`, async () => {
    const random = randomOf(300)
    for (let run = 0; run < RUNS; run++) {
      const spec = markets[random(3)] as MarketSpec
      const type = ORDER_TYPES[random(ORDER_TYPES.length)] as Order['type']
      const signer = wallet(`signer ${random(5)}`)
      const order: Order = {
        marketId: spec.marketId,
        maker: wallet(`maker ${random(5)}`).address.toLowerCase() as Order['maker'],
        side: random(2) === 0 ? 'LONG' : 'SHORT',
        type,
        price: (isMarketType(type) ? 0 : 1 + random(2 ** 31)) as Ticks,
        quantity: (1 + random(2 ** 31) * 1000) as Steps,
        trigger: (type === 'MARKET' || type === 'LIMIT' ? 0 : 1 + random(2 ** 31)) as Ticks,
        leverage: 1 + random(127),
        reduceOnly: mustReduceOnly(type) || random(2) === 0,
        expiration: (random(2) === 0 ? 0 : random(2 ** 31) * 256) as Seconds,
        salt: BigInt(random(2 ** 31)) * BigInt(random(2 ** 21)),
      }
      const domain = toHex(domainSeparator(spec, keccak))
      const fill = orderStruct(order, 1, 0)
      const terms = await termsStruct(rules, spec, {
        price: 1 as Ticks,
        oracle: 1n as Price,
        terms: { makerFee: 0n as Rate, takerFee: 0n as Rate, fundingIndex: 0n as never },
        domain,
      })
      const hash = hashOrder(order, spec, keccak)
      expect(await rules.digest(fill, terms)).to.equal(hash)

      const { signature } = signOrder(order, spec, signer)
      const parts = {
        r: signature.slice(0, 66),
        s: `0x${signature.slice(66, 130)}`,
        v: Number(`0x${signature.slice(130, 132)}`),
      }
      expect(await rules.recover({ ...fill, ...parts }, hash)).to.equal(signer.address)
      expect(verifyMessage(getBytes(hash), signature.slice(0, 132))).to.equal(signer.address)
      expect(recoverAddress(hash, signature.slice(0, 132))).not.to.equal(signer.address)
    }
  }).timeout(60_000)
})

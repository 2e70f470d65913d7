import { expect } from 'chai'
import { verifyTypedData, Wallet } from 'ethers'
import { describe, it } from 'mocha'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Millis, Price } from '../../domain/units.ts'
import { createReportSigner } from '../../stack/oracle.ts'
import { randomWalk, type Walk } from '../../stack/prices.ts'
import { SEED_MARKETS } from '../../stack/seed-markets.ts'

const E18 = 10n ** 18n
const walk: Walk = { grain: E18 / 100n, home: 100n * E18, volatility: 0.001, probability: false }
const nextPrices = (source: { next(): bigint }, count: number) =>
  Array.from({ length: count }, () => source.next())

describe('stack/prices', () => {
  it('when seeds are equal, the prices are equal, and another seed gives other prices', () => {
    const first = nextPrices(randomWalk(walk, 100n * E18, 1), 50)
    expect(nextPrices(randomWalk(walk, 100n * E18, 1), 50)).to.deep.equal(first)
    expect(nextPrices(randomWalk(walk, 100n * E18, 2), 50)).to.not.deep.equal(first)
  })

  it('when it starts away from home, it stays on the grain and reverts to home in the long run', () => {
    const prices = nextPrices(randomWalk(walk, 150n * E18, 3), 30_000)
    expect(prices.every((price) => price % walk.grain === 0n && price > 0n)).to.equal(true)
    const late = prices.slice(-10_000).map((price) => Number(price / E18))
    expect(late.reduce((sum, price) => sum + price, 0) / late.length).to.be.within(85, 115)
  })

  it('when the price is a probability, it stays above 0 and at most 1', () => {
    const wild = { ...walk, home: E18 / 2n, grain: E18 / 10_000n, volatility: 0.5, probability: true }
    for (const price of nextPrices(randomWalk(wild, E18 / 2n, 4), 5_000))
      expect(price > 0n && price <= E18).to.equal(true)
  })
})

describe('stack/oracle', () => {
  it('when a report is signed, its signature recovers to the signer over the struct that SignedPriceOracle verifies', () => {
    const wallet = new Wallet(`0x${'22'.repeat(32)}`)
    const address = `0x${'33'.repeat(20)}`
    const feedId = `0x${'0'.repeat(63)}1`
    const signer = createReportSigner(wallet.privateKey, { chainId: 6343, address })
    const { price, observedAt, signatures } = signer.sign(
      feedId,
      (5n * E18) as Price,
      1_700_000_000_000 as Millis,
    )
    const types = {
      PriceReport: [
        { name: 'feedId', type: 'bytes32' },
        { name: 'price', type: 'uint256' },
        { name: 'observedAt', type: 'uint256' },
      ],
    }
    const domain = { name: 'SignedPriceOracle', version: '1', chainId: 6343, verifyingContract: address }
    expect(verifyTypedData(domain, types, { feedId, price, observedAt }, signatures)).to.equal(wallet.address)
  })
})

describe('stack/seed-markets', () => {
  it('when the seed markets are listed, there is one of each kind and each meets the listing rules', () => {
    const kinds = SEED_MARKETS.map(({ plan }) => plan.kind)
    expect(kinds).to.deep.equal(['perpetual', 'perpetual', 'future', 'binary_future'])
    for (const { plan } of SEED_MARKETS) {
      const { tick, step, imr, mmr, maxLeverage } = plan as MarketSpec
      expect((tick * step) % 10n ** 24n, plan.symbol).to.equal(0n)
      if (plan.kind === 'binary_future')
        expect([E18 % tick, (tick * tick * step) % 10n ** 42n]).to.deep.equal([0n, 0n])
      expect(imr * BigInt(maxLeverage) <= E18, plan.symbol).to.equal(true)
      expect(imr - mmr >= 75n * 10n ** 14n, plan.symbol).to.equal(true)
      expect(imr % 10n ** 12n, plan.symbol).to.equal(0n)
    }
  })
})

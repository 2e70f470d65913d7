import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { verifyTypedData, Wallet } from 'ethers'
import { describe, it } from 'mocha'
import type { MarketSpec } from '../../domain/market/market.ts'
import { allowedMove } from '../../domain/prices/report.ts'
import type { Millis, Price } from '../../domain/units.ts'
import { randomWalk, STEP_MS, type Walk } from '../../keeper/adapters/sources/walk.ts'
import { REPORT_LIMITS } from '../../stack/deploy.ts'
import { createReportSigner } from '../../stack/oracle.ts'
import { SEED_MARKETS } from '../../stack/seed-markets.ts'
import { e18 } from '../support/markets.ts'

const E18 = 10n ** 18n
const walk: Walk = { grain: E18 / 100n, home: 100n * E18, volatility: 0.001, probability: false }
const nextPrices = (source: { next(): bigint }, count: number) =>
  Array.from({ length: count }, () => source.next())

describe('the simulated walk', () => {
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

/** The default limits of a market, in millionths. */
const DEFAULT_MOVES = {
  moveBase: REPORT_LIMITS.moveBase / 10n ** 12n,
  moveSlope: REPORT_LIMITS.moveSlope / 10n ** 12n,
  moveWindow: REPORT_LIMITS.moveWindow as Millis,
}

describe('prices of the seed markets', () => {
  it('when any two published prices of a run are used one after the other, the market accepts the move', () => {
    for (const { plan, firstPrice, walk } of SEED_MARKETS) {
      const prices = nextPrices(randomWalk(walk, firstPrice, 5), 20_000) as Price[]
      // Quiet markets use every report, busy or halted ones the next one or a much later one.
      for (const distance of [1, 2, 3, 20, 120, 1_200]) {
        const refused = prices.slice(distance).filter((price, at) => {
          const before = prices[at] as Price
          const move = price > before ? price - before : before - price
          return move > allowedMove(before, distance * STEP_MS, { ...DEFAULT_MOVES, kind: plan.kind })
        })
        expect(refused, `${plan.symbol}, ${distance} reports apart`).to.deep.equal([])
      }
    }
  })
})

describe('the table of jumps in docs/audit/trust-model.md', () => {
  const cases = [
    ['perpetual', '30 %, up or down', '100', ['130', '70']],
    ['numeric future', '30 %, up or down', '100', ['130', '70']],
    ['binary future', 'from 0.5 to 0.65 or to 0.35', '0.5', ['0.65', '0.35']],
    ['binary future', 'from 0.5 to 0.8 or to 0.2', '0.5', ['0.8', '0.2']],
    ['binary future', 'from 0.1 to 0.9', '0.1', ['0.9']],
    ['binary future', 'from 0.9 to 0.1', '0.9', ['0.1']],
    ['binary future', 'from 0.001 to 0.5', '0.001', ['0.5']],
    ['binary future', 'from 0.999 to 0.5', '0.999', ['0.5']],
    ['binary future', 'from 0.001 to 1', '0.001', ['1']],
  ] as const
  const KINDS = {
    perpetual: 'perpetual',
    'numeric future': 'future',
    'binary future': 'binary_future',
  } as const
  const table = readFileSync('docs/audit/trust-model.md', 'utf8')

  for (const [kind, jump, from, targets] of cases) {
    it(`when the price of a ${kind} jumps ${jump}, it has the first tenth of a second at which the default limits accept it`, () => {
      const tenths = targets.map((to) => {
        const [before, after] = [e18(from) as Price, e18(to)]
        const move = after > before ? after - before : before - after
        let tenth = 1
        while (allowedMove(before, tenth * 100, { ...DEFAULT_MOVES, kind: KINDS[kind] }) < move) tenth++
        return tenth
      })
      expect(new Set(tenths).size).to.equal(1)
      expect(table).to.include(`| ${kind} | ${jump} | ${(tenths[0] ?? 0) / 10} s |`)
    })
  }
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

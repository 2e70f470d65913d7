import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { tickCeil } from '../../../domain/market/band.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import {
  equityOf,
  exposureOf,
  isBelow,
  isFullyCollateralised,
  isHealthyAfterFills,
  isLiquidatable,
  isRatioAtLeast,
  isRatioNotWorse,
  LIQUIDATION_BUFFER,
  mayOpen,
  NO_UPPER_BOUND,
  openingBound,
  ratioOf,
} from '../../../domain/positions/margin.ts'
import { applyFill, FLAT, openingBasis, type Position } from '../../../domain/positions/position.ts'
import { ONE, type Price, type Rate, type Ticks } from '../../../domain/units.ts'
import {
  binary,
  future,
  index,
  markets,
  perpetual,
  price,
  quote,
  rate,
  steps,
  ticks,
} from '../../support/markets.ts'

const NO_FUNDING = index(0n)
const at = (size: number, entry: string, margin: string): Position => ({
  size: steps(size),
  entryNotional: quote(entry),
  foldedMargin: quote(margin),
  leverage: 10,
})

describe('ratio', () => {
  it('when the position is a long, it is (margin + value - entry) / value', () => {
    expect(ratioOf(exposureOf(perpetual, at(1000, '100', '10'), NO_FUNDING, price('100')))).to.equal(
      rate('0.1'),
    )
    expect(ratioOf(exposureOf(perpetual, at(1000, '100', '10'), NO_FUNDING, price('80')))).to.equal(
      rate('-0.125'),
    )
  })

  it('when the position is a short, it is (margin + entry - value) / value', () => {
    expect(ratioOf(exposureOf(perpetual, at(-1000, '100', '10'), NO_FUNDING, price('80')))).to.equal(
      rate('0.375'),
    )
  })

  it('when the position is a binary short, it is against 1 - O', () => {
    expect(ratioOf(exposureOf(binary, at(-10, '4', '6'), NO_FUNDING, price('0.5')))).to.equal(rate('1'))
    expect(ratioOf(exposureOf(binary, at(-10, '4', '3'), NO_FUNDING, price('0.5')))).to.equal(rate('0.4'))
  })

  it('when funding is pending, it is computed after funding', () => {
    const paid = index(10n ** 15n)
    expect(equityOf(perpetual, at(1000, '100', '10'), paid, price('100'))).to.equal(quote('9'))
    expect(equityOf(perpetual, at(-1000, '100', '10'), paid, price('100'))).to.equal(quote('11'))
  })

  it('when there is no notional, it is null and meets every requirement', () => {
    const flat = exposureOf(perpetual, FLAT, NO_FUNDING, price('100'))
    expect(ratioOf(flat)).to.equal(null)
    expect(isRatioAtLeast(flat, ONE as Rate)).to.equal(true)
  })

  it('when the ratio differs by one wei, the comparison decides by it', () => {
    const oracle = price('100')
    const edge = exposureOf(perpetual, at(1000, '100', '4.5'), NO_FUNDING, oracle)
    const below = exposureOf(
      perpetual,
      { ...at(1000, '100', '4.5'), foldedMargin: (quote('4.5') - 1n) as never },
      NO_FUNDING,
      oracle,
    )
    expect([isRatioAtLeast(edge, perpetual.imr), isRatioAtLeast(below, perpetual.imr)]).to.deep.equal([
      true,
      false,
    ])
    expect([isRatioNotWorse(below, edge), isRatioNotWorse(edge, below)]).to.deep.equal([true, false])
    expect(isRatioNotWorse(edge, edge)).to.equal(true)
  })
})

describe('eligibility', () => {
  it('when the ratio is below MMR plus half a point, the position can be liquidated', () => {
    const edge = at(1000, '100', '2.75')
    expect(perpetual.mmr + LIQUIDATION_BUFFER).to.equal(rate('0.0275'))
    expect(isLiquidatable(perpetual, edge, NO_FUNDING, price('100'))).to.equal(false)
    expect(isLiquidatable(perpetual, edge, index(1n), price('100'))).to.equal(true)
    expect(isBelow(perpetual, edge, index(1n), price('100'), perpetual.mmr)).to.equal(false)
  })

  it('when the account is flat, it is never eligible', () => {
    expect(isLiquidatable(perpetual, FLAT, NO_FUNDING, price('100'))).to.equal(false)
  })

  it('when a binary position is fully collateralised, it is never eligible, at any oracle price', () => {
    for (const position of [at(10, '4', '4'), at(-10, '4', '6')]) {
      expect(isFullyCollateralised(binary, position, NO_FUNDING)).to.equal(true)
      for (const oracle of ['0.000001', '0.5', '0.999999', '1']) {
        expect(isLiquidatable(binary, position, NO_FUNDING, price(oracle))).to.equal(false)
        expect(mayOpen(binary, position, NO_FUNDING, price(oracle))).to.equal(true)
      }
    }
  })

  it('when one wei is missing, or the market is not binary, it is not fully collateralised', () => {
    const short = { ...at(-10, '4', '6'), foldedMargin: (quote('6') - 1n) as never }
    expect(isFullyCollateralised(binary, short, NO_FUNDING)).to.equal(false)
    expect(isFullyCollateralised(future, at(10, '4', '400'), NO_FUNDING)).to.equal(false)
  })

  it('when a position is fully collateralised, it meets IMR at every oracle price in [0, 1]', () => {
    const anyPosition = fc.record({
      size: fc.integer({ min: -1000, max: 1000 }).filter((size) => size !== 0),
      entry: fc.integer({ min: 0, max: 1000 }),
      spare: fc.bigInt({ min: 0n, max: 100n }),
      oracle: fc.bigInt({ min: 0n, max: ONE }),
    })
    fc.assert(
      fc.property(anyPosition, ({ size, entry, spare, oracle }) => {
        const entryNotional = (BigInt(Math.abs(size)) * BigInt(entry) * ONE) / 1000n
        const loss = size > 0 ? entryNotional : BigInt(-size) * ONE - entryNotional
        const position = {
          size: steps(size),
          entryNotional,
          foldedMargin: loss + spare,
          leverage: 1,
        } as Position
        expect(isFullyCollateralised(binary, position, NO_FUNDING)).to.equal(true)
        const exposure = exposureOf(binary, position, NO_FUNDING, oracle as Price)
        expect(isRatioAtLeast(exposure, ONE as Rate)).to.equal(true)
      }),
    )
  })
})

describe('isHealthyAfterFills', () => {
  const oracle = price('100')
  const poor = at(1000, '100', '3')

  it('when a position grows below IMR, it returns false', () => {
    const after = at(1001, '100.1', '3.1')
    expect(
      isHealthyAfterFills(perpetual, { before: poor, after, opened: true }, NO_FUNDING, oracle),
    ).to.equal(false)
  })

  it('when a close leaves the rest no worse, it returns true below IMR', () => {
    const after = at(500, '50', '1.5')
    expect(
      isHealthyAfterFills(perpetual, { before: poor, after, opened: false }, NO_FUNDING, oracle),
    ).to.equal(true)
  })

  it('when the rest is worse, it returns false', () => {
    const after = at(500, '50', '1.4')
    expect(
      isHealthyAfterFills(perpetual, { before: poor, after, opened: false }, NO_FUNDING, oracle),
    ).to.equal(false)
  })

  it('when nothing is left, it returns true', () => {
    expect(
      isHealthyAfterFills(perpetual, { before: poor, after: FLAT, opened: false }, NO_FUNDING, oracle),
    ).to.equal(true)
  })
})

describe('openingBound', () => {
  const order = (side: 'LONG' | 'SHORT', limit: number, leverage: number) => ({
    side,
    limit: ticks(limit),
    leverage,
  })

  it('when the leverage is 1, a buy and any binary order have no bound', () => {
    expect(openingBound(perpetual, order('LONG', 1000, 1), price('100'))).to.equal(NO_UPPER_BOUND)
    expect(openingBound(binary, order('LONG', 0, 1), price('0.5'))).to.equal(NO_UPPER_BOUND)
    expect(openingBound(binary, order('SHORT', 0, 1), price('0.5'))).to.equal(0)
  })

  const table = [
    // 100 x 0.955 / 0.95 = 100.526; 100 x 1.045 / 1.05 = 99.52; 104.5 - 99 / 20 = 99.55
    { name: 'a buy at 20x', spec: perpetual, order: order('LONG', 0, 20), oracle: '100', bound: 1005 },
    {
      name: 'a market sell at 20x',
      spec: perpetual,
      order: order('SHORT', 0, 20),
      oracle: '100',
      bound: 996,
    },
    {
      name: 'a limit sell at 20x',
      spec: perpetual,
      order: order('SHORT', 990, 20),
      oracle: '100',
      bound: 996,
    },
    {
      name: 'a limit sell far above the market',
      spec: perpetual,
      order: order('SHORT', 40_000, 20),
      oracle: '100',
      bound: 0,
    },
    // 0.5 x 0.82 / 0.8 = 0.5125
    { name: 'a binary buy at 5x', spec: binary, order: order('LONG', 0, 5), oracle: '0.5', bound: 512 },
    { name: 'a binary sell at 5x', spec: binary, order: order('SHORT', 0, 5), oracle: '0.5', bound: 488 },
    {
      name: 'a binary sell at 5x near 0',
      spec: binary,
      order: order('SHORT', 0, 5),
      oracle: '0.001',
      bound: 0,
    },
  ]
  for (const { name, spec, order, oracle, bound } of table) {
    it(`when the order is ${name}, it is ${bound}`, () =>
      expect(openingBound(spec, order, price(oracle))).to.equal(bound))
  }

  const anyCase = fc.record({
    spec: fc.constantFrom(...markets),
    side: fc.constantFrom('LONG' as const, 'SHORT' as const),
    leverageSeed: fc.nat(),
    isMarket: fc.boolean(),
    oracle: fc.bigInt({ min: ONE / 100n, max: (ONE * 99n) / 100n }),
    limit: fc.integer({ min: 1, max: 999 }),
    size: fc.integer({ min: 1, max: 1_000_000 }),
  })

  /** An oracle price of about 1,000 ticks, so that rounding matters. */
  const scaled = (spec: MarketSpec, oracle: bigint): Price => ((oracle * 1000n * spec.tick) / ONE) as Price
  const fillAt = (
    spec: MarketSpec,
    c: { side: 'LONG' | 'SHORT'; leverage: number; size: number },
    p: number,
    limit: number,
    oracle: Price,
  ) =>
    applyFill(
      spec,
      FLAT,
      {
        side: c.side,
        price: ticks(p),
        steps: steps(c.size),
        takerSteps: steps(0),
        leverage: c.leverage,
        basis: openingBasis(spec, { side: c.side, limit: ticks(limit) }, ticks(p), oracle),
      },
      { fundingIndex: NO_FUNDING, makerFee: rate('0'), takerFee: rate('0') },
    )

  it('when an order fills at the bound, it meets IMR, and one tick beyond it does not', () => {
    fc.assert(
      fc.property(anyCase, ({ spec, side, leverageSeed, isMarket, oracle: seed, limit: anyLimit, size }) => {
        const leverage = 1 + (leverageSeed % spec.maxLeverage)
        const oracle = scaled(spec, seed)
        const limit = isMarket ? 0 : anyLimit
        const bound = openingBound(spec, { side, limit: ticks(limit), leverage }, oracle)
        const meets = (p: number): boolean => {
          const verdict = fillAt(spec, { side, leverage, size }, p, limit, oracle)
          return verdict.ok && mayOpen(spec, verdict.value.position, NO_FUNDING, oracle)
        }
        if (bound === NO_UPPER_BOUND) return
        // A binary market clears between one tick and one tick below 1; a limit sell at its limit or above.
        const isPrice = (p: number): boolean =>
          p >= 1 && (spec.kind !== 'binary_future' || p <= 999) && (side === 'LONG' || p >= limit)
        const beyond = side === 'LONG' ? bound + 1 : bound - 1
        if (isPrice(bound)) expect(meets(bound), 'at the bound').to.equal(true)
        // Rounding up the margin of the last step may admit one more tick, never two.
        const wellBeyond = side === 'LONG' ? beyond + 1 : beyond - 1
        if (isPrice(wellBeyond)) expect(meets(wellBeyond), 'beyond the bound').to.equal(false)
      }),
      { numRuns: 500 },
    )
  })

  it('when a position at IMR grows within the bound, it stays at IMR', () => {
    fc.assert(
      fc.property(anyCase, fc.nat(), fc.integer({ min: 1, max: 1000 }), (c, secondSeed, more) => {
        const { spec, side } = c
        const oracle = scaled(spec, c.oracle)
        const leverage = 1 + (c.leverageSeed % spec.maxLeverage)
        const second = 1 + (secondSeed % spec.maxLeverage)
        const limit = c.isMarket ? 0 : c.limit
        const inside = (bound: Ticks): number =>
          side === 'LONG' ? Math.min(bound, tickCeil(spec, oracle)) : Math.max(bound, limit, 1)
        const first = inside(openingBound(spec, { side, limit: ticks(limit), leverage }, oracle))
        if (spec.kind === 'binary_future' && first > 999) return
        const opened = fillAt(spec, { side, leverage, size: c.size }, first, limit, oracle)
        if (!opened.ok) throw new Error('opens')
        const p = inside(openingBound(spec, { side, limit: ticks(limit), leverage: second }, oracle))
        if (spec.kind === 'binary_future' && p > 999) return
        const grown = applyFill(
          spec,
          opened.value.position,
          {
            side,
            price: ticks(p),
            steps: steps(more),
            takerSteps: steps(0),
            leverage: second,
            basis: openingBasis(spec, { side, limit: ticks(limit) }, ticks(p), oracle),
          },
          { fundingIndex: NO_FUNDING, makerFee: rate('0'), takerFee: rate('0') },
        )
        expect(grown.ok && mayOpen(spec, grown.value.position, NO_FUNDING, oracle)).to.equal(true)
      }),
    )
  })
})

/** Generates positions near liquidation and insolvency, and computes their value. */
import fc from 'fast-check'
import type { MarketSpec } from '../../domain/market/market.ts'
import { exposureOf } from '../../domain/positions/margin.ts'
import { FLAT, foldMargin, type Position } from '../../domain/positions/position.ts'
import type { FundingIndex, Price, Quote, Steps } from '../../domain/units.ts'
import { markets } from './markets.ts'

export interface MarketCase {
  readonly spec: MarketSpec
  readonly index: FundingIndex
  readonly oracle: Price
  readonly positions: readonly Position[]
}

interface Draw {
  readonly size: number
  /**
   * Entry price relative to the oracle price, margin relative to the entry, in thousandths; and dust in wei.
   */
  readonly entry: number
  readonly margin: number
  readonly dust: number
}

const anyDraw = fc.record({
  size: fc.oneof(fc.integer({ min: -50, max: 50 }), fc.integer({ min: -2_000_000, max: 2_000_000 })),
  entry: fc.integer({ min: 500, max: 1500 }),
  margin: fc.integer({ min: -200, max: 600 }),
  dust: fc.nat(997),
})

function positionOf(spec: MarketSpec, draw: Draw, oracle: Price, index: FundingIndex): Position {
  if (draw.size === 0) return FLAT
  const value = (BigInt(Math.abs(draw.size)) * spec.step * oracle) / 10n ** 18n
  const entry = (value * BigInt(draw.entry)) / 1000n + BigInt(draw.dust)
  const size = draw.size as Steps
  const margin = (entry * BigInt(draw.margin)) / 1000n - BigInt(draw.dust)
  return {
    size,
    entryNotional: entry as Quote,
    foldedMargin: foldMargin(margin, size, index),
    leverage: 1 + (draw.dust % 20),
  }
}

/** A market at a random price with `count` positions, some of them flat. */
export const anyMarketCase = (count: number): fc.Arbitrary<MarketCase> =>
  fc
    .record({
      spec: fc.constantFrom(...markets),
      ticks: fc.integer({ min: 1, max: 999 }),
      part: fc.nat(999),
      funding: fc.bigInt({ min: -(10n ** 12n), max: 10n ** 12n }),
      draws: fc.array(anyDraw, { minLength: count, maxLength: count }),
    })
    .map(({ spec, ticks, part, funding, draws }) => {
      const oracle = (BigInt(ticks) * spec.tick + (BigInt(part) * spec.tick) / 1000n) as Price
      const index = funding as FundingIndex
      return { spec, index, oracle, positions: draws.map((draw) => positionOf(spec, draw, oracle, index)) }
    })

/** Total value of the positions at a price, in wei × 1e18. */
export const worthOf = (
  spec: MarketSpec,
  positions: readonly Position[],
  index: FundingIndex,
  at: bigint,
): bigint => positions.reduce((sum, each) => sum + exposureOf(spec, each, index, at as Price).equity, 0n)

/** The pool of a market with these positions: their value at price 0 and index 0. */
export function poolOf(positions: Iterable<Position>): Quote {
  let pool = 0n
  for (const { size, entryNotional, foldedMargin } of positions)
    pool += foldedMargin - BigInt(Math.sign(size)) * entryNotional
  return pool as Quote
}

/** Converts prices and sizes of a recording to a market's ticks and steps. Pure. */
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Price, Steps, Ticks } from '../../domain/units.ts'

export interface Mapping {
  /** The nearest tick, at least the market's minimum price. Equal recorded prices map to equal ticks, so orders that crossed still cross. */
  ticks(price: bigint): Ticks
  /** The scaled price, not rounded to the tick. */
  oraclePrice(price: bigint): Price
  /** Whole steps, between the market's minimum and maximum order size. */
  steps(size: bigint): Steps
}

export interface MappingBase {
  readonly spec: MarketSpec
  /** The market's oracle price when the replay starts. */
  readonly oracle: Price
  /** The price of the recording's first trade. It maps to `oracle`; every other price keeps its distance from it in per cent. */
  readonly first: bigint
}

export function createMapping({ spec, oracle, first }: MappingBase): Mapping {
  const scaled = (price: bigint): bigint => (price * oracle) / first
  return {
    ticks: (price) => Math.max(nearest(scaled(price), spec.tick), spec.minPrice, 1) as Ticks,
    oraclePrice: (price) => scaled(price) as Price,
    steps: (size) =>
      Math.min(Math.max(Number(size / spec.step), spec.minQuantity, 1), spec.maxQuantity) as Steps,
  }
}

const nearest = (value: bigint, increment: bigint): number =>
  Number((2n * value + increment) / (2n * increment))

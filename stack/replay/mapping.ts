/** From the file's prices and sizes to a market's ticks and steps. Pure. */
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Price, Steps, Ticks } from '../../domain/units.ts'

export interface Mapping {
  /** The nearest tick, at least the market's lowest price. Equal file prices give equal ticks, so crossings are kept. */
  ticks(price: bigint): Ticks
  /** As an oracle price: scaled, not rounded to the tick. */
  oraclePrice(price: bigint): Price
  /** Whole steps, within the market's smallest and largest order. */
  steps(size: bigint): Steps
}

export interface MappingBase {
  readonly spec: MarketSpec
  /** What the market's oracle said when the replay began ... */
  readonly oracle: Price
  /** ... and what the file's first trade was: every price keeps its distance from that in per cent. */
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

/** Computes the price band: the prices around the oracle price at which a batch may clear. */

import { maxOf, minOf, mulDivDown, mulDivUp, ONE, type Price, type Ticks } from '../units.ts'
import { highestPrice, type MarketSpec } from './market.ts'

/** Both ends are prices at which a batch may clear. Never empty. */
export interface Band {
  readonly lo: Ticks
  readonly hi: Ticks
}

/** The tick at or below `price`. */
export const tickFloor = (spec: MarketSpec, price: Price): Ticks => Number(price / spec.tick) as Ticks
/** The tick at or above `price`. */
export const tickCeil = (spec: MarketSpec, price: Price): Ticks =>
  Number(mulDivUp(price, 1n, spec.tick)) as Ticks
/** The tick nearest to `price`, half rounded down. A batch without pressure clears there. */
export function tickNearest(spec: MarketSpec, price: Price): Ticks {
  const below = price / spec.tick
  const isAboveHalf = 2n * (price - below * spec.tick) > spec.tick
  return Number(isAboveHalf ? below + 1n : below) as Ticks
}

/** The range of prices that a market supports. */
const supportedRange = (spec: MarketSpec): Band => ({ lo: 1 as Ticks, hi: highestPrice(spec) })

const clamp = (price: Ticks, { lo, hi }: Band): Ticks => maxOf(lo, minOf(hi, price))

/**
 * The band in ticks, rounded inward, in the range that the market supports. It always contains the ticks around O. The
 * minimum order price does not limit it: O may be lower.
 */
export function priceBand(spec: MarketSpec, oracle: Price): Band {
  const lo = Number(mulDivUp(oracle, ONE - spec.mtbShort, ONE * spec.tick)) as Ticks
  const hi = Number(mulDivDown(oracle, ONE + spec.mtbLong, ONE * spec.tick)) as Ticks
  const range = supportedRange(spec)
  return {
    lo: clamp(minOf(lo, tickFloor(spec, oracle)), range),
    hi: clamp(maxOf(hi, tickCeil(spec, oracle)), range),
  }
}

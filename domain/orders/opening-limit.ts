/**
 * Computes where a limit order may open a position at an oracle price, and the nearest valid price and leverage if its
 * own limit does not meet the initial margin requirement.
 */
import { priceBand } from '../market/band.ts'
import { highestPrice, type MarketSpec } from '../market/market.ts'
import { openingBound } from '../positions/margin.ts'
import { maxOf, minOf, type Price, type Ticks } from '../units.ts'
import type { Side } from './order.ts'

export interface LimitTerms {
  readonly side: Side
  readonly limit: Ticks
  readonly leverage: number
}

/** Whether a share opened at the order's own limit is below IMR at the oracle price. */
export function opensBelowRequirement(spec: MarketSpec, order: LimitTerms, oracle: Price): boolean {
  const bound = openingBound(spec, order, oracle)
  return order.side === 'LONG' ? bound < order.limit : bound > order.limit
}

/** The limit closest to the order's own that meets IMR at its leverage; null if the market supports none. */
export function nearestOpeningPrice(spec: MarketSpec, order: LimitTerms, oracle: Price): Ticks | null {
  // Also for a sell margined at its limit l: l >= O(1+IMR) - l/L if and only if l >= O(1+IMR)/(1+1/L), the bound of a
  // market order.
  const price = openingBound(spec, { ...order, limit: 0 as Ticks }, oracle)
  return price >= spec.minPrice && price <= highestPrice(spec) ? price : null
}

/**
 * The highest leverage below the order's leverage that meets IMR at its limit; null if there is none.
 * By bisection: a lower leverage never tightens the bound.
 */
export function nearestOpeningLeverage(spec: MarketSpec, order: LimitTerms, oracle: Price): number | null {
  const isTooHigh = (leverage: number): boolean => opensBelowRequirement(spec, { ...order, leverage }, oracle)
  if (isTooHigh(1)) return null
  let accepted = 1
  let refused = order.leverage
  while (refused - accepted > 1) {
    const middle = Math.floor((accepted + refused) / 2)
    if (isTooHigh(middle)) refused = middle
    else accepted = middle
  }
  return accepted
}

/**
 * Effective limit of a limit order in a batch at the oracle price.
 * The signed limit is moved to the band edge on the aggressive side, and for an opening share (`opens`) to
 * its opening bound.
 */
export function effectiveLimit(
  spec: MarketSpec,
  order: LimitTerms & { readonly opens: boolean },
  oracle: Price,
): Ticks {
  const { side, limit, opens } = order
  const { lo, hi } = priceBand(spec, oracle)
  const inBand = side === 'LONG' ? minOf(limit, hi) : maxOf(limit, lo)
  if (!opens) return inBand
  const bound = openingBound(spec, order, oracle)
  return side === 'LONG' ? minOf(inBand, bound) : maxOf(inBand, bound)
}

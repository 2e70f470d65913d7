/**
 * Computes where a limit order may open a position at an oracle price: whether its own limit meets the initial
 * margin requirement, the nearest price and leverage that do, and the limit at which it takes part.
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

/** Whether a share that opens at the order's own limit is below IMR at the oracle price. */
export function opensBelowRequirement(spec: MarketSpec, order: LimitTerms, oracle: Price): boolean {
  const bound = openingBound(spec, order, oracle)
  return order.side === 'LONG' ? bound < order.limit : bound > order.limit
}

/**
 * The least aggressive change of the limit that meets IMR at the order's leverage; null if the market supports
 * no such price. It is the bound of a market order, also for a sell that posts margin at its limit l:
 * l >= O(1+IMR) - l/L if and only if l >= O(1+IMR)/(1+1/L).
 */
export function nearestOpeningPrice(spec: MarketSpec, order: LimitTerms, oracle: Price): Ticks | null {
  const price = openingBound(spec, { ...order, limit: 0 as Ticks }, oracle)
  return price >= spec.minPrice && price <= highestPrice(spec) ? price : null
}

/**
 * The highest leverage below the order's that meets IMR at the order's limit; null if none does. By bisection:
 * a lower leverage never tightens the bound.
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
 * The limit at which a limit order takes part in a batch at the oracle price: its own, moved to the edge of the
 * band on the aggressive side, and for a share that opens (`opens`) to its opening bound.
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

/** A second statement of the margin requirement at a limit order's own price, without the rounding of the domain. */
import { type MarketSpec, priceOf } from '../../domain/market/market.ts'
import { ONE, type Price, type Ticks } from '../../domain/units.ts'

interface LimitOrder {
  readonly side: 'LONG' | 'SHORT'
  readonly price: number
  readonly leverage: number
}

/** Equity after opening one unit at the limit, below IMR × the notional at the oracle price; both × leverage × 1e18. */
export function isBelowRequirement(
  spec: MarketSpec,
  { side, price, leverage }: LimitOrder,
  oracle: Price,
): boolean {
  const isNo = side === 'SHORT' && spec.kind === 'binary_future'
  const limit: bigint = priceOf(spec, price as Ticks)
  const [paid, value] = isNo ? [ONE - limit, ONE - oracle] : [limit, oracle as bigint]
  const profit = side === 'LONG' || isNo ? value - paid : paid - value
  return (paid + profit * BigInt(leverage)) * ONE < spec.imr * value * BigInt(leverage)
}

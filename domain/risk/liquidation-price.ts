/** Computes the liquidation price of a position for display. Decisions use `isLiquidatable`. */

import type { MarketSpec } from '../market/market.ts'
import { isFullyCollateralised, LIQUIDATION_BUFFER } from '../positions/margin.ts'
import { marginOf, type Position } from '../positions/position.ts'
import { divCeil, divFloor, type FundingIndex, maxOf, minOf, ONE, type Price } from '../units.ts'

/**
 * Oracle price at which a position becomes eligible for liquidation: equity = (MMR + buffer) × notional, exact to the
 * wei. Null if flat, fully collateralised, or a long with full margin.
 */
export function liquidationPrice(spec: MarketSpec, position: Position, index: FundingIndex): Price | null {
  if (position.size === 0 || isFullyCollateralised(spec, position, index)) return null
  const isBinary = spec.kind === 'binary_future'
  const rate = spec.mmr + LIQUIDATION_BUFFER
  const margin = marginOf(position, index)
  const quantity = BigInt(Math.abs(position.size)) * spec.step
  if (position.size > 0) {
    const price = divCeil((position.entryNotional - margin) * ONE * ONE, quantity * (ONE - rate)) - 1n
    if (price <= 0n) return null
    return (isBinary ? minOf(price, ONE) : price) as Price
  }
  const worth = (position.entryNotional + margin) * ONE * ONE
  const price = isBinary
    ? divFloor(worth - rate * quantity * ONE, quantity * (ONE - rate))
    : divFloor(worth, quantity * (ONE + rate))
  return maxOf(1n, price + 1n) as Price
}

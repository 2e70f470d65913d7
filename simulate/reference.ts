/**
 * Independent risk arithmetic from the glossary's definitions, so that the laws do not check `domain/` by itself.
 * Equities and stakes are wei × 1e18.
 */

import { priceBand } from '../domain/market/band.ts'
import { type MarketSpec, priceOf } from '../domain/market/market.ts'
import type { Position } from '../domain/positions/position.ts'
import { ONE, type Ticks } from '../domain/units.ts'

export interface Prices {
  readonly index: bigint
  readonly oracle: bigint
}

/** The liquidation buffer: half a percentage point above MMR. */
const BUFFER = ONE / 200n
/** Ticks by which the bankruptcy price can lie beyond its quotient, because each of its two parts is rounded per step. */
const ROUNDING = 4

/** Payout to the account if the position closes at the price. */
export function equityAt(spec: MarketSpec, position: Position, { index, oracle }: Prices): bigint {
  const margin = position.foldedMargin - BigInt(position.size) * index
  const entry = position.entryNotional * ONE
  const value = BigInt(Math.abs(position.size)) * spec.step * oracle
  return margin * ONE + (position.size > 0 ? value - entry : entry - value)
}

/** Divisor of the ratio: the value at the price; for a binary short, its largest loss. */
export function stakeAt(spec: MarketSpec, { size }: Position, { oracle }: Prices): bigint {
  const price = spec.kind === 'binary_future' && size < 0 ? ONE - oracle : oracle
  return BigInt(Math.abs(size)) * spec.step * price
}

/** Whether the equity is never negative at a price of a binary market. */
const isCovered = (spec: MarketSpec, position: Position, { index }: Prices): boolean =>
  spec.kind === 'binary_future' &&
  equityAt(spec, position, { index, oracle: position.size > 0 ? 0n : ONE }) >= 0n

export const isUnder = (spec: MarketSpec, position: Position, prices: Prices, rate: bigint): boolean =>
  position.size !== 0 &&
  equityAt(spec, position, prices) * ONE < rate * stakeAt(spec, position, prices) &&
  !isCovered(spec, position, prices)

export const isBelowThreshold = (spec: MarketSpec, position: Position, prices: Prices): boolean =>
  isUnder(spec, position, prices, spec.mmr + BUFFER)

/** Whether a close at a price of the band leaves no bad debt. Null if the rounding of the bankruptcy price decides. */
export function isSolventInBand(spec: MarketSpec, position: Position, prices: Prices): boolean | null {
  const { lo, hi } = priceBand(spec, prices.oracle as never)
  const isLong = position.size > 0
  const at = (tick: number): bigint =>
    equityAt(spec, position, { ...prices, oracle: priceOf(spec, tick as Ticks) })
  if (at(isLong ? hi : lo) < 0n) return false
  return at(isLong ? hi - ROUNDING : lo + ROUNDING) >= 0n ? true : null
}

/** Score of a counterparty: profit / entry × leverage. Null if it does not qualify. */
export function rankScore(spec: MarketSpec, position: Position, prices: Prices): bigint | null {
  const equity = equityAt(spec, position, prices)
  const entry = position.entryNotional * ONE
  const value = BigInt(Math.abs(position.size)) * spec.step * prices.oracle
  const profit = position.size > 0 ? value - entry : entry - value
  if (position.size === 0 || entry === 0n || profit <= 0n || equity <= 0n) return null
  const leverage = (stakeAt(spec, position, prices) * ONE) / equity
  return (((profit * ONE) / entry) * leverage) / ONE
}

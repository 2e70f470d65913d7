/**
 * Rules of auto-deleveraging: a position closes against profitable opposite positions, at its bankruptcy
 * price without fees.
 * Twin of the contract's DeleverageLib.
 */

import type { MarketSpec } from '../market/market.ts'
import { exposureOf, isBelow } from '../positions/margin.ts'
import { closedShare, foldMargin, marginOf, type Position } from '../positions/position.ts'
import { type Address, type FundingIndex, minOf, ONE, type Price, type Quote, type Steps } from '../units.ts'
import type { Backstop } from './liquidation.ts'
import { inherit } from './liquidation.ts'

/**
 * Whether the position is below MMR, and has no equity or cannot be inherited. `backstop`: null if the market has none;
 * 'itself' if the account is the backstop, which must have no equity.
 */
export function isDeleverageable(
  spec: MarketSpec,
  position: Position,
  backstop: Backstop | 'itself' | null,
  index: FundingIndex,
  oracle: Price,
): boolean {
  if (!isBelow(spec, position, index, oracle, spec.mmr)) return false
  if (exposureOf(spec, position, index, oracle).equity <= 0n) return true
  return backstop !== 'itself' && !inherit(spec, position, backstop, index, oracle).ok
}

/**
 * Score of a counterparty × 1e18: profit / entry × notional / equity, rounded down at each division; null if none is
 * positive. Source: Hyperliquid and BitMEX, risk research C4.
 */
export function scoreOf(
  spec: MarketSpec,
  position: Position,
  index: FundingIndex,
  oracle: Price,
): bigint | null {
  const value = BigInt(position.size) * spec.step * oracle
  const entry = position.entryNotional * ONE
  const profit = position.size > 0 ? value - entry : value + entry
  const { equity, notional } = exposureOf(spec, position, index, oracle)
  if (position.size === 0 || profit <= 0n || equity <= 0n || entry === 0n) return null
  const gain = (profit * ONE) / entry
  const leverage = (notional * ONE) / equity
  return (gain * leverage) / ONE
}

export interface Ranked {
  readonly account: Address
  readonly score: bigint
}

/** Required order of counterparties: score descending, then address ascending. Negative: a before b. */
export function compareRanks(a: Ranked, b: Ranked): number {
  if (a.score !== b.score) return a.score > b.score ? -1 : 1
  if (a.account === b.account) return 0
  return a.account < b.account ? -1 : 1
}

export interface DeleveragingLeg {
  /** Steps closed on both sides. */
  readonly steps: Steps
  /** Remaining position of the bankrupt account, and of the counterparty. */
  readonly position: Position
  readonly counterparty: Position
  /** Wei credited to the counterparty's free balance. The bankrupt account receives nothing. */
  readonly payout: Quote
}

/** The position without `closed` steps and without their share of margin and entry notional. */
export const reduced = (
  position: Position,
  closed: Steps,
  share: { released: bigint; entry: bigint },
  index: FundingIndex,
): Position => {
  const size = (position.size - Math.sign(position.size) * closed) as Steps
  return {
    size,
    entryNotional: (position.entryNotional - share.entry) as Quote,
    foldedMargin: foldMargin(marginOf(position, index) - share.released, size, index),
    leverage: position.leverage,
  }
}

/**
 * Closes `steps` of two opposite positions at the price that leaves the bankrupt account exactly zero; null if the
 * counterparty's proceeds would be negative. Shares round as in a partial close.
 */
export function closeAtBankruptcy(
  position: Position,
  counterparty: Position,
  steps: Steps,
  index: FundingIndex,
): DeleveragingLeg | null {
  const own = closedShare(position, marginOf(position, index), steps)
  const other = closedShare(counterparty, marginOf(counterparty, index), steps)
  const isLong = position.size > 0
  // Value is conserved: the counterparty receives the margin and result that the bankrupt side loses.
  const value = isLong ? own.entry - own.released : own.entry + own.released
  const result = isLong ? other.entry - value : value - other.entry
  const payout = (other.released + result) as Quote
  if (payout < 0n) return null
  return {
    steps,
    position: reduced(position, steps, own, index),
    counterparty: reduced(counterparty, steps, other, index),
    payout,
  }
}

/**
 * One leg as the contract computes it: at most the size of either position. Null if the counterparty does not qualify.
 */
export function closeAgainst(
  spec: MarketSpec,
  position: Position,
  counterparty: Position,
  requested: Steps,
  index: FundingIndex,
  oracle: Price,
): DeleveragingLeg | null {
  if (position.size * counterparty.size >= 0) return null
  if (scoreOf(spec, counterparty, index, oracle) === null) return null
  const available = minOf(Math.abs(position.size), Math.abs(counterparty.size))
  return closeAtBankruptcy(position, counterparty, minOf(requested, available) as Steps, index)
}

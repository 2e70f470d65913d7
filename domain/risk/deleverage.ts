/**
 * Auto-deleveraging: a position that neither the book nor the backstop took is closed against profitable opposite ones, at its
 * bankruptcy price and without fees. Twin of DeleverageLib.
 */

import type { MarketSpec } from '../market/market.ts'
import { exposureOf, isBelow } from '../positions/margin.ts'
import { closedShare, foldMargin, marginOf, type Position } from '../positions/position.ts'
import { type Address, type FundingIndex, minOf, ONE, type Price, type Quote, type Steps } from '../units.ts'
import type { Backstop } from './liquidation.ts'
import { inherit } from './liquidation.ts'

/**
 * Ratio below MMR, and nothing is left to lose or the backstop cannot take the position. `backstop` is null where the market
 * has none, and 'itself' where the account is the backstop: then only insolvency counts.
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
 * (unrealised profit / entry notional) x (notional / equity) at the oracle price, x 1e18: the more profitable and the more
 * leveraged, the higher. Down after each of the three divisions. Null where it cannot be a counterparty: flat, without
 * profit, or without equity. Source: Hyperliquid's and BitMEX's ranking, risk research C4.
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

/** The order in which counterparties must be listed: score descending, then address ascending. Negative: a before b. */
export function compareRanks(a: Ranked, b: Ranked): number {
  if (a.score !== b.score) return a.score > b.score ? -1 : 1
  if (a.account === b.account) return 0
  return a.account < b.account ? -1 : 1
}

export interface DeleveragingLeg {
  /** Steps closed on both sides. */
  readonly steps: Steps
  /** The rest of the bankrupt position, and of the counterparty's. */
  readonly position: Position
  readonly counterparty: Position
  /** What the counterparty's free balance receives; the account's receives nothing. */
  readonly payout: Quote
}

const reduced = (
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
 * Closes `steps` of both, opposite sides, at the value that leaves the account exactly nothing: entry - margin of the closed
 * share for a long, entry + margin for a short. The shares round as in any partial close. Moves no value in or out: what one
 * side's margin and result lose, the other side is paid. Null where the counterparty's proceeds would be below zero.
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

/** As the chain does it: null where the counterparty does not qualify, and no more steps than both sides hold. */
export function closeAgainst(
  spec: MarketSpec,
  position: Position,
  counterparty: Position,
  asked: Steps,
  index: FundingIndex,
  oracle: Price,
): DeleveragingLeg | null {
  if (position.size * counterparty.size >= 0) return null
  if (scoreOf(spec, counterparty, index, oracle) === null) return null
  const held = minOf(Math.abs(position.size), Math.abs(counterparty.size))
  return closeAtBankruptcy(position, counterparty, minOf(asked, held) as Steps, index)
}

/**
 * Decides how the backstop closes an inherited position: one reduce-only limit order at a time, near the oracle price,
 * each a fraction of the position and of the reachable depth.
 */
import type { Side } from '../orders/order.ts'
import { maxOf, minOf, mulDivUp, ONE, type Price, type Steps, type Ticks } from '../units.ts'

/** Fractions in millionths. */
export interface ClosingRules {
  /** Fraction of the position per order. */
  readonly share: number
  /** Fraction of the quantity that the order could meet within its limit. */
  readonly depthShare: number
  /**
   * Largest distance of the limit from the oracle price, on its worse side; for a probability, relative to
   * the price or its complement.
   */
  readonly bound: number
}

export interface ClosingMarket {
  readonly isBinary: boolean
  readonly tick: Price
  readonly minQuantity: Steps
  readonly maxQuantity: Steps
}

export interface ClosingLevel {
  readonly limit: Ticks
  readonly steps: Steps
}

export interface ClosingInput {
  readonly market: ClosingMarket
  /** Matched position size, positive if long. */
  readonly size: Steps
  readonly oracle: Price
  /** Opposite side of the book, best level first. */
  readonly levels: readonly ClosingLevel[]
}

export interface ClosingOrder {
  readonly side: Side
  readonly limit: Ticks
  readonly steps: Steps
}

const MILLION = 1_000_000

const part = (steps: number, millionths: number): number => Math.floor((steps * millionths) / MILLION)

/**
 * The next order; null if there is no position. It takes a share of the book within the bound, or rests at the oracle
 * price: beyond it, the order would move the book without a counterparty.
 */
export function closingOrder(
  { market, size, oracle, levels }: ClosingInput,
  rules: ClosingRules,
): ClosingOrder | null {
  if (size === 0) return null
  const side: Side = size > 0 ? 'SHORT' : 'LONG'
  const worst = worstLimit(market, side, oracle, rules.bound)
  const depth = levels.reduce((sum, { limit, steps }) => sum + (isMet(side, limit, worst) ? steps : 0), 0)
  const whole = Math.abs(size)
  const pace = part(whole, rules.share)
  const wanted = depth === 0 ? pace : minOf(pace, part(depth, rules.depthShare))
  const limit = depth === 0 ? worstLimit(market, side, oracle, 0) : worst
  return { side, limit, steps: closable(market, whole, wanted) }
}

const isMet = (side: Side, level: Ticks, limit: Ticks): boolean =>
  side === 'SHORT' ? level >= limit : level <= limit

/** At least the smallest order; the whole position if its rest would be too small for a separate order. */
function closable({ minQuantity, maxQuantity }: ClosingMarket, whole: number, wanted: number): Steps {
  const steps = minOf(maxOf(wanted, minQuantity), maxQuantity)
  return (whole - steps < minQuantity ? minOf(whole, maxQuantity) : steps) as Steps
}

/** Limit rounded in favour of the backstop, and within the prices that the market supports. */
function worstLimit({ isBinary, tick }: ClosingMarket, side: Side, oracle: Price, bound: number): Ticks {
  const base = isBinary ? minOf<bigint>(oracle, ONE - oracle) : oracle
  const away = (base * BigInt(bound)) / BigInt(MILLION)
  const ticks = Number(side === 'SHORT' ? mulDivUp(oracle - away, 1n, tick) : (oracle + away) / tick)
  const highest = isBinary ? Number(ONE / tick) - 1 : Number.MAX_SAFE_INTEGER
  return maxOf(1, minOf(ticks, highest)) as Ticks
}

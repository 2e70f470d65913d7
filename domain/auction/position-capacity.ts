/**
 * Computes the limits that an account's position sets for its orders in one batch.
 * The rules equal `margin` and `position`; most results are reached without their bigint divisions.
 */

import type { RestingOrder } from '../book/book.ts'
import type { Band } from '../market/band.ts'
import { type MarketSpec, tickStepValue } from '../market/market.ts'
import type { Side } from '../orders/order.ts'
import { mayOpen } from '../positions/margin.ts'
import { bankruptcyPrice, FLAT, type Position } from '../positions/position.ts'
import { type FundingIndex, ONE, type Price, type Steps, type Ticks, type UserId } from '../units.ts'

export interface PositionCapacity {
  /** Position size, long positive. Orders on the opposite side may reduce it. */
  readonly size: Steps
  readonly reducingSide: Side | null
  /**
   * Limit in ticks of every order on the reducing side: the bankruptcy price, beyond which a close would leave bad debt.
   * It is the band edge if the bankruptcy price lies beyond the band.
   */
  readonly bankruptcyLimit: Ticks
  readonly mayOpen: boolean
}

/** Position capacities of a market's accounts. */
export interface Capacities {
  /**
   * Capacity of an account and some of its orders, at least one. A field that none of the orders needs is not computed.
   */
  of(account: UserId, orders: readonly RestingOrder[]): PositionCapacity
}

/** Capacity of a flat account. */
export const FLAT_CAPACITY: PositionCapacity = {
  size: FLAT.size,
  reducingSide: null,
  bankruptcyLimit: 0 as Ticks,
  mayOpen: true,
}

/**
 * Bound of the relative error of a few double operations, as a fraction of the sum of their operands.
 * A comparison within this error is recomputed exactly.
 */
const RELATIVE_ERROR = 1e-9
/** Maximum ticks by which rounding can move the bankruptcy price from the plain quotient. */
const ROUNDING_TICKS = 4

export class PositionCapacities {
  readonly #spec: MarketSpec
  readonly #band: Band
  readonly #oracle: Price
  readonly #index: FundingIndex
  readonly #tickValue: number
  readonly #indexValue: number
  readonly #stepValue: number
  readonly #required: { readonly LONG: number; readonly SHORT: number }

  constructor(spec: MarketSpec, band: Band, oracle: Price, index: FundingIndex) {
    this.#spec = spec
    this.#band = band
    this.#oracle = oracle
    this.#index = index
    this.#tickValue = Number(tickStepValue(spec))
    this.#indexValue = Number(index)
    this.#stepValue = Number(spec.step * oracle) / Number(ONE)
    const atStake =
      spec.kind === 'binary_future' ? Number(spec.step * (ONE - oracle)) / Number(ONE) : this.#stepValue
    const imr = Number(spec.imr) / Number(ONE)
    this.#required = { LONG: imr * this.#stepValue, SHORT: imr * atStake }
  }

  /** Capacity of a non-flat account. A field that none of `orders` needs is not computed. */
  of(position: Position, orders: readonly RestingOrder[]): PositionCapacity {
    const reducingSide = position.size > 0 ? 'SHORT' : 'LONG'
    const estimate = this.#estimate(position)
    const closes = orders.some(({ side }) => side === reducingSide)
    const opens = orders.some(({ openable }) => openable > 0)
    return {
      size: position.size,
      reducingSide,
      bankruptcyLimit: closes ? this.#bankruptcyLimit(position, estimate) : (0 as Ticks),
      mayOpen: opens && this.#mayOpen(position, estimate),
    }
  }

  #estimate({ size, entryNotional, foldedMargin }: Position): Estimate {
    const folded = Number(foldedMargin)
    const funding = size * this.#indexValue
    const entry = Number(entryNotional)
    const value = size * this.#stepValue
    return {
      margin: folded - funding,
      entry,
      value,
      error: (Math.abs(folded) + Math.abs(funding) + entry + Math.abs(value)) * RELATIVE_ERROR,
    }
  }

  #bankruptcyLimit(position: Position, { margin, entry, error }: Estimate): Ticks {
    const { lo, hi } = this.#band
    const isLong = position.size > 0
    const perTick = Math.abs(position.size) * this.#tickValue
    const tolerance = error / perTick + ROUNDING_TICKS
    if (isLong && (entry - margin) / perTick + tolerance < lo) return lo
    if (!isLong && (entry + margin) / perTick - tolerance > hi) return hi
    return bankruptcyPrice(this.#spec, position, this.#index)
  }

  #mayOpen(position: Position, { margin, entry, value, error }: Estimate): boolean {
    const equity = position.size > 0 ? margin + value - entry : margin + value + entry
    const required = Math.abs(position.size) * this.#required[position.size > 0 ? 'LONG' : 'SHORT']
    return equity - required > error || mayOpen(this.#spec, position, this.#index, this.#oracle)
  }
}

/**
 * A position in doubles, in wei: margin, entry notional, signed value at the oracle price, and a bound of
 * their total error.
 */
interface Estimate {
  readonly margin: number
  readonly entry: number
  readonly value: number
  readonly error: number
}

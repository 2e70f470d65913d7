/**
 * Computes how much an order may open in one batch, and up to which price.
 * The rules equal `margin` and `reservation`; most results are reached without their bigint divisions.
 */

import type { RestingOrder } from '../book/book.ts'
import type { Band } from '../market/band.ts'
import { feeAllowancePerStep } from '../market/fees.ts'
import { type MarketSpec, tickStepValue } from '../market/market.ts'
import { coveredSteps } from '../orders/reservation.ts'
import { openingBound } from '../positions/margin.ts'
import type { Price, Steps, Ticks } from '../units.ts'

/** Margin above the double rounding error. A result within it is recomputed exactly. */
const ERROR_FACTOR = 1.001

export class OpeningMargins {
  readonly #spec: MarketSpec
  readonly #oracle: Price
  readonly #band: Band
  readonly #isBinary: boolean
  readonly #tickStepValue: number
  readonly #marketBounds = { LONG: new Map<number, Ticks>(), SHORT: new Map<number, Ticks>() }
  readonly #fees = new Map<Ticks, number>()

  constructor(spec: MarketSpec, oracle: Price, band: Band) {
    this.#spec = spec
    this.#oracle = oracle
    this.#band = band
    this.#isBinary = spec.kind === 'binary_future'
    this.#tickStepValue = Number(tickStepValue(spec))
  }

  /** `openingBound` of the order at the batch's oracle price. */
  boundFor(order: RestingOrder): Ticks {
    const bound = this.#marketBound(order)
    const dependsOnLimit = order.side === 'SHORT' && order.type === 'LIMIT' && !this.#isBinary
    // A market sell's bound is O(1+IMR)/(1+1/L). A limit l at or above this bound is also at or above its
    // limit-sell bound, O(1+IMR) - l/L.
    if (!dependsOnLimit || order.limit >= bound) return bound
    return openingBound(this.#spec, order, this.#oracle)
  }

  /** `coveredSteps` of the order in the batch's band. */
  coveredSteps(order: RestingOrder): Steps {
    const { side, type, limit, leverage, openable, reservedPrice } = order
    if (side === 'LONG' || this.#isBinary || openable === 0) return openable
    if (reservedPrice >= this.#band.hi) return openable
    if (type === 'LIMIT') {
      // The margin depends only on the limit; the fee has risen with the upper band edge. If the reservation
      // lacks less than the margin of one step, it covers all steps but one.
      const missing = (this.#feeAt(this.#band.hi) - this.#feeAt(reservedPrice)) * openable
      const step = (limit * this.#tickStepValue) / leverage
      if (missing > 0 && missing * ERROR_FACTOR < step) return (openable - 1) as Steps
    }
    return coveredSteps(this.#spec, order, this.#band, this.#oracle)
  }

  #marketBound({ side, leverage }: RestingOrder): Ticks {
    let bound = this.#marketBounds[side].get(leverage)
    if (bound === undefined) {
      bound = openingBound(this.#spec, { side, leverage, limit: 0 as Ticks }, this.#oracle)
      this.#marketBounds[side].set(leverage, bound)
    }
    return bound
  }

  #feeAt(price: Ticks): number {
    let fee = this.#fees.get(price)
    if (fee === undefined) {
      fee = Number(feeAllowancePerStep(this.#spec, price))
      this.#fees.set(price, fee)
    }
    return fee
  }
}

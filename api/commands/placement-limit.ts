/**
 * Bounds concurrent placements, so that an overloaded exchange answers accepted placements fast and refuses the rest at
 * once.
 */

export interface PlacementLimitOptions {
  /** A longer mean lowers the bound, and a mean below half of it raises it. */
  readonly targetMs: number
  /** The bound never falls below this many orders: one slow process must not stop placements. */
  readonly least: number
  /** The bound never rises above this many orders, and begins there. */
  readonly most: number
}

export interface PlacementLimit {
  /** False if the orders must be refused. Otherwise they are under way until `leave`. */
  enter(orders: number): boolean
  /** The orders are answered, `tookMs` after they entered. `now` is a monotonic time in milliseconds. */
  leave(orders: number, tookMs: number, now: number): void
  readonly bound: number
}

/** The part of the bound that stays when answers are slow. */
const DECREASE = 0.8
/** Weight of the newest answer in the mean. */
const SMOOTHING = 0.1

/**
 * Additive increase, multiplicative decrease (Chiu and Jain, 1989) of the bound, by mean answer time. A burst enters
 * whole, because the bound falls only after slow answers.
 */
export function createPlacementLimit({ targetMs, least, most }: PlacementLimitOptions): PlacementLimit {
  let bound = most
  let underWay = 0
  let meanMs = 0
  /** The effect of a decrease shows in answers to what has entered since. */
  let loweredAt = Number.NEGATIVE_INFINITY

  return {
    get bound() {
      return bound
    },
    enter(orders) {
      // A batch that is larger than the bound enters alone.
      if (underWay > 0 && underWay + orders > bound) return false
      underWay += orders
      return true
    },
    leave(orders, tookMs, now) {
      const wasUsed = underWay
      underWay -= orders
      meanMs += SMOOTHING * (tookMs - meanMs)
      if (meanMs < targetMs / 2) bound = Math.min(most, bound + orders)
      else if (meanMs > targetMs && now - loweredAt >= targetMs) {
        loweredAt = now
        bound = Math.max(least, Math.min(bound, wasUsed) * DECREASE)
      }
    },
  }
}

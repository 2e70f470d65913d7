/**
 * Recomputes matched positions after a dropped funding update.
 * Queued parts were matched at the funding index that the update would have set; without it, they settle at another index.
 */
import { byAccount } from '../auction/batch.ts'
import type { MarketSpec } from '../market/market.ts'
import type { Side } from '../orders/order.ts'
import { type FillTerms, openingBasis, type Position } from '../positions/position.ts'
import type { Price, Steps, Ticks, UserId } from '../units.ts'
import { settleAccount } from './settle-account.ts'

interface PartTerms extends FillTerms {
  readonly price: Ticks
  readonly oracle: Price
}

export interface PartFill {
  readonly account: UserId
  readonly side: Side
  readonly limit: Ticks
  readonly leverage: number
  readonly steps: Steps
  readonly takerSteps: Steps
}

/** An unmined part, with the funding index at which it will settle. */
export interface QueuedFills {
  /** Specification with the parameters in force for this part; by default the specification of all parts. */
  readonly spec?: MarketSpec
  readonly terms: PartTerms
  /** In the order of the part. */
  readonly fills: readonly PartFill[]
}

/**
 * Positions of all accounts after the parts, starting from mined positions. Null if the contract would reject a part.
 */
export function replayParts(
  spec: MarketSpec,
  parts: readonly QueuedFills[],
  mined: (account: UserId) => Position,
): ReadonlyMap<UserId, Position> | null {
  const positions = new Map<UserId, Position>()
  for (const { spec: inForce = spec, terms, fills } of parts) {
    for (const run of byAccount(fills)) {
      const { account } = run[0] as PartFill
      const own = run.map(({ side, limit, leverage, steps, takerSteps }) => ({
        ...{ side, price: terms.price, steps, takerSteps, leverage },
        basis: openingBasis(inForce, { side, limit }, terms.price, terms.oracle),
      }))
      const settled = settleAccount(inForce, positions.get(account) ?? mined(account), own, terms)
      if (!settled.ok) return null
      positions.set(account, settled.value.position)
    }
  }
  return positions
}

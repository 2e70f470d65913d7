/** Finds the account whose credit made the bank refuse a part. The bank's error names the amount, not the account. */

import { byAccount } from '../auction/batch.ts'
import type { MarketSpec } from '../market/market.ts'
import type { Side } from '../orders/order.ts'
import { type FillTerms, openingBasis, type Position } from '../positions/position.ts'
import type { Price, Quote, Steps, Ticks, UserId } from '../units.ts'
import { settleAccount } from './settle-account.ts'

/** The largest free balance that the bank stores: 96 bits. */
export const FREE_CEILING = (2n ** 96n - 1n) as Quote

export interface PartTerms extends FillTerms {
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

export interface CreditInput {
  readonly spec: MarketSpec
  readonly terms: PartTerms
  /** All fills of the part, in its order. */
  readonly fills: readonly PartFill[]
  /** Before the part. */
  readonly positions: (account: UserId) => Position
  readonly freeOf: (account: UserId) => Quote
}

/** The first account of the part whose free balance would exceed the ceiling; null if none would. */
export function refusedCredit({ spec, terms, fills, positions, freeOf }: CreditInput): UserId | null {
  const before = new Map<UserId, { readonly position: Position; readonly free: bigint }>()
  for (const run of byAccount(fills)) {
    const { account } = run[0] as PartFill
    const at = before.get(account) ?? { position: positions(account), free: freeOf(account) }
    const own = run.map(({ side, limit, leverage, steps, takerSteps }) => ({
      ...{ side, price: terms.price, steps, takerSteps, leverage },
      basis: openingBasis(spec, { side, limit }, terms.price, terms.oracle),
    }))
    const settled = settleAccount(spec, at.position, own, terms)
    if (!settled.ok) continue
    const free = at.free + settled.value.freeDelta
    if (settled.value.freeDelta > 0n && free > FREE_CEILING) return account
    before.set(account, { position: settled.value.position, free })
  }
  return null
}

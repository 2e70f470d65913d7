/**
 * Moving averages of a market's book against the oracle price. They survive a change of the market's owner.
 */
import type { AveragesChange } from '../journal/journal-row.ts'
import type { MarkBasis } from './mark.ts'
import { NO_PREMIUM, type PremiumAverage } from './premium.ts'

export interface PriceAverages {
  /** Null before the first mark. */
  readonly basis: MarkBasis | null
  readonly premium: PremiumAverage
}

/** Journal change from `before` to `after`; null before the first mark. */
export function averagesChange(before: PriceAverages, after: PriceAverages): AveragesChange | null {
  const { basis, premium } = after
  if (basis === null) return null
  const known = new Map(before.premium.intervals.map((interval) => [interval.from, interval]))
  const changed = premium.intervals.filter(({ from, sampled, sum }) => {
    const same = known.get(from)
    return same?.sampled !== sampled || same.sum !== sum
  })
  return {
    basis: basis.value.toString(),
    basis_at: basis.at,
    premium_at: premium.at,
    first: premium.intervals[0]?.from ?? null,
    premium: changed.map(({ from, sampled, sum }) => [from, sampled, sum.toString()] as const),
  }
}

export const NO_AVERAGES: PriceAverages = { basis: null, premium: NO_PREMIUM }

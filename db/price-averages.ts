/** The table `price_averages`: the averages behind a market's mark price and funding rate. The engine writes it. */
import type { StoredInterval } from '../domain/journal/journal-row.ts'
import { NO_AVERAGES, type PriceAverages } from '../domain/prices/averages.ts'
import type { Millis } from '../domain/units.ts'

/** A market's averages in one JSON value; null before its first mark. */
export type StoredAverages = {
  readonly basis: string
  readonly basis_at: number
  readonly premium_at: number
  readonly premium: readonly StoredInterval[]
} | null

/** SQL of a `StoredAverages`. `marketId`: an SQL expression. */
export const averagesColumn = (marketId: string): string => `
  (
    select json_build_object('basis', a.basis::text, 'basis_at', a.basis_at, 'premium_at', a.premium_at, 'premium', a.premium)
    from price_averages a where a.market_id = ${marketId}
  )
`

export function toAverages(stored: StoredAverages): PriceAverages {
  if (stored === null) return NO_AVERAGES
  const { basis, basis_at, premium_at, premium } = stored
  return {
    basis: { value: BigInt(basis), at: basis_at as Millis },
    premium: {
      at: premium_at as Millis,
      intervals: premium.map(([from, sampled, sum]) => ({ from: from as Millis, sampled, sum: BigInt(sum) })),
    },
  }
}

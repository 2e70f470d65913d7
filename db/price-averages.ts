/** The table `price_averages`: the averages behind a market's mark price and funding rate. The caller of a write owns the market's marks. */
import { sql } from 'kysely'
import type { StoredInterval } from '../domain/journal/journal-row.ts'
import { NO_AVERAGES, type PriceAverages } from '../domain/prices/averages.ts'
import type { PremiumInterval } from '../domain/prices/premium.ts'
import type { Millis } from '../domain/units.ts'
import type { Db, Tx } from './client.ts'

const storedInterval = ({ from, sampled, sum }: PremiumInterval): StoredInterval => [
  from,
  sampled,
  sum.toString(),
]

export async function storeAverages(
  tx: Tx,
  marketId: number,
  { basis, premium }: PriceAverages,
): Promise<void> {
  if (basis === null) return
  const row = {
    ...{ basis: basis.value, basis_at: basis.at, premium_at: premium.at },
    premium: JSON.stringify(premium.intervals.map(storedInterval)),
  }
  await tx
    .insertInto('price_averages')
    .values({ market_id: marketId, ...row })
    .onConflict((conflict) => conflict.column('market_id').doUpdateSet(row))
    .execute()
}

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

export async function loadAverages(db: Db | Tx, marketId: number): Promise<PriceAverages> {
  const { rows } = await sql<{ averages: StoredAverages }>`
    select ${sql.raw(averagesColumn('m.market_id'))} as averages from markets m where m.market_id = ${marketId}
  `.execute(db)
  return toAverages(rows[0]?.averages ?? null)
}

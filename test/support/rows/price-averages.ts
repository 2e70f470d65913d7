/** Averages behind a mark price. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../../db/client.ts'
import { averagesColumn, type StoredAverages, toAverages } from '../../../db/price-averages.ts'
import type { StoredInterval } from '../../../domain/journal/journal-row.ts'
import type { PriceAverages } from '../../../domain/prices/averages.ts'
import type { PremiumInterval } from '../../../domain/prices/premium.ts'

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

export async function loadAverages(db: Db | Tx, marketId: number): Promise<PriceAverages> {
  const { rows } = await sql<{ averages: StoredAverages }>`
    select ${sql.raw(averagesColumn('m.market_id'))} as averages from markets m where m.market_id = ${marketId}
  `.execute(db)
  return toAverages(rows[0]?.averages ?? null)
}

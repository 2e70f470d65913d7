/** The table `deleveraging_ranks`: which scores divide the candidates for deleveraging into fifths. The caller of a write owns the market's auctions. */
import type { DeleveragingRanks } from '../domain/risk/rank-lights.ts'
import type { FundingIndex, Price } from '../domain/units.ts'
import type { Tx } from './client.ts'

const texts = (scores: readonly bigint[]): string => JSON.stringify(scores.map(String))

export async function storeRanks(
  tx: Tx,
  marketId: number,
  { oracle, index, longs, shorts }: DeleveragingRanks,
  at: number,
): Promise<void> {
  const row = {
    ...{ oracle_price: oracle, funding_index: index, ranked_at: at },
    ...{ longs: texts(longs), shorts: texts(shorts) },
  }
  await tx
    .insertInto('deleveraging_ranks')
    .values({ market_id: marketId, ...row })
    .onConflict((conflict) => conflict.column('market_id').doUpdateSet(row))
    .execute()
}

/** Ranks in one JSON value; null before the first. */
export type StoredRanks = {
  readonly oracle_price: string
  readonly funding_index: string
  readonly longs: readonly string[]
  readonly shorts: readonly string[]
  readonly ranked_at: number
} | null

/** SQL of a `StoredRanks`. `marketId`: an SQL expression. */
export const ranksColumn = (marketId: string): string => `
  (
    select json_build_object('oracle_price', r.oracle_price::text, 'funding_index', r.funding_index::text,
      'longs', r.longs, 'shorts', r.shorts, 'ranked_at', r.ranked_at)
    from deleveraging_ranks r where r.market_id = ${marketId}
  )
`

export const toRanks = ({
  oracle_price,
  funding_index,
  longs,
  shorts,
}: NonNullable<StoredRanks>): DeleveragingRanks => ({
  oracle: BigInt(oracle_price) as Price,
  index: BigInt(funding_index) as FundingIndex,
  longs: longs.map(BigInt),
  shorts: shorts.map(BigInt),
})

/** Positions in the read model. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { ranksColumn, type StoredRanks } from '../../db/deleveraging-ranks.ts'
import { fundingColumn, type StoredFunding } from '../../db/funding.ts'
import { TERMS_COLUMNS } from '../../db/terms.ts'
import { anyNumber } from '../wire/list-query.ts'

/** Tables of the read model that `positionsOfUser` reads. */
export const POSITION_TABLES = ['read.positions', 'read.markets'] as const

/** Positions with an open size, or with fills that are not settled yet. */
export function positionsOfUser(db: Db | Tx, userId: number, marketId?: number) {
  const query = db
    .selectFrom('read.positions as p')
    .innerJoin('read.markets as m', 'm.market_id', 'p.market_id')
    .innerJoin('markets as w', 'w.market_id', 'p.market_id')
    .selectAll('p')
    .select(['m.oracle_price', 'm.mark_price', 'w.ended'])
    .select(TERMS_COLUMNS.map((column) => `w.${column}` as const))
    .select([
      sql.raw<StoredFunding>(fundingColumn('p.market_id')).as('funding'),
      sql.raw<StoredRanks>(ranksColumn('p.market_id')).as('ranks'),
    ])
    .where('p.user_id', '=', userId)
    .where((where) => where.or([where('p.size', '!=', 0), where('p.pending', '!=', 0)]))
    .orderBy('p.market_id')
  return (marketId === undefined ? query : query.where('p.market_id', '=', anyNumber(marketId))).execute()
}

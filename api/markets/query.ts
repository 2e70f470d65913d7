/** Modes and last prices of markets, from the write side and the read model. */
import type { Db, Tx } from '../../db/client.ts'
import type { MarketKind } from '../../domain/market/market.ts'

const selectMarkets = (db: Db | Tx) =>
  db
    .selectFrom('markets as m')
    .leftJoin('read.markets as r', 'r.market_id', 'm.market_id')
    .select([
      'm.market_id',
      'm.mode',
      'r.oracle_price',
      'r.oracle_at',
      'r.mark_price',
      'r.last_price',
      'r.last_batch_id',
    ])

export const marketStates = (db: Db | Tx, filter: { kind?: MarketKind | undefined; limit: number }) => {
  const query = selectMarkets(db)
  return (filter.kind === undefined ? query : query.where('m.kind', '=', filter.kind))
    .orderBy('m.market_id')
    .limit(filter.limit)
    .execute()
}

export const marketState = (db: Db | Tx, marketId: number) =>
  selectMarkets(db).where('m.market_id', '=', marketId).executeTakeFirst()

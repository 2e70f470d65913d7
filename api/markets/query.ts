/** Markets, books and the state of the exchange. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { MarketKind } from '../../domain/market/market.ts'
import type { Side } from '../../domain/orders/order.ts'
import type { LevelRow } from './view.ts'

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

export interface BookRows {
  readonly seq: number
  readonly long: LevelRow[]
  readonly short: LevelRow[]
}

const side = (marketId: number, which: Side, depth: number) => sql`(
  select coalesce(jsonb_agg(to_jsonb(l) order by l.place), '[]') from (
    select side, price, quantity, order_count,
      row_number() over (order by ${which === 'LONG' ? sql`price desc` : sql`price`}) as place
    from read.book_levels
    where market_id = ${marketId} and side = ${which} and quantity > 0
    order by place limit ${depth}
  ) l
)`

/** Both sides, best first, and the sequence they are of: one statement, so one snapshot. */
export async function bookLevels(db: Db | Tx, marketId: number, depth: number): Promise<BookRows> {
  const { rows } = await sql<BookRows>`
    select
      coalesce((select seq from read.projection where shard = ${marketShard(marketId)}), 0) as seq,
      ${side(marketId, 'LONG', depth)} as long,
      ${side(marketId, 'SHORT', depth)} as short
  `.execute(db)
  return rows[0] as BookRows
}

export interface StatusRow {
  readonly market_id: number
  readonly symbol: string
  readonly mode: 'open' | 'cancel_only' | 'halted' | 'settling' | 'settled'
  readonly last_batch_id: number
  readonly observed_at: number | null
  readonly lag: number
}

export async function exchangeStatus(db: Db) {
  const markets = await sql<StatusRow>`
    select m.market_id, m.symbol, m.mode, m.last_batch_id, o.observed_at,
      greatest(0, s.head - coalesce(p.seq, 0)) as lag
    from markets m
    join shards s on s.shard = 'm' || m.market_id
    left join oracle_reports o on o.market_id = m.market_id
    left join read.projection p on p.shard = s.shard and p.epoch = s.epoch
    order by m.market_id
  `.execute(db)
  const chain = await db
    .selectFrom('chain_progress')
    .select(['chain_id', 'head', 'completed_at'])
    .executeTakeFirst()
  return { markets: markets.rows, chain: chain ?? null }
}

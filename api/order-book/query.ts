/** Order book levels from the read model. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { Side } from '../../domain/orders/order.ts'
import type { LevelRow } from './view.ts'

/** Tables that `bookLevels` reads. */
export const LEVEL_TABLES = ['read.book_levels', 'read.fills'] as const

export interface BookRows {
  readonly seq: number
  /** Last batch whose matches the levels exclude; null before the first. */
  readonly batch: number | null
  readonly long: LevelRow[]
  readonly short: LevelRow[]
}

/** Best levels of one side. The read stops after `depth` rows, however long the book is. */
const side = (marketId: number, which: Side, depth: number) => {
  const order = which === 'LONG' ? sql`price desc` : sql`price`
  return sql`(
    select coalesce(jsonb_agg(to_jsonb(level) order by ${order}), '[]') from (
      select side, price, quantity, order_count from read.book_levels
      where market_id = ${marketId} and side = ${which} and quantity > 0
      order by ${order} limit ${depth}
    ) level
  )`
}

/** Both sides, best price first, with the projected sequence. One statement reads one snapshot. */
export async function bookLevels(db: Db | Tx, marketId: number, depth: number): Promise<BookRows> {
  const { rows } = await sql<BookRows>`
    select
      coalesce((select seq from read.places where shard = ${marketShard(marketId)} and projection = 'orders'), 0) as seq,
      (select max(batch_id) from read.fills where market_id = ${marketId}) as batch,
      ${side(marketId, 'LONG', depth)} as long,
      ${side(marketId, 'SHORT', depth)} as short
  `.execute(db)
  return rows[0] as BookRows
}

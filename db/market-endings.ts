/** The end of each market in the table `markets`: its final report, how it has ended, and the prices that operators have stated. */
import { sql } from 'kysely'
import type { Millis, Price } from '../domain/units.ts'
import type { Db, Tx } from './client.ts'

// ---------------------------------------------------------------------- as the chain has it

export const ENDING_COLUMNS = ['dispute_window', 'final_report', 'ended'] as const

// ---------------------------------------------------------------------- as operators have stated it

export interface StatedPrice {
  readonly price: Price
  readonly by: string
  readonly reason: string
  readonly at: Millis
}

/** The prices that operators have stated for a market, the newest first. */
export async function statedPrices(db: Db | Tx, marketId: number): Promise<StatedPrice[]> {
  const rows = await db
    .selectFrom('final_prices')
    .selectAll()
    .where('market_id', '=', marketId)
    .orderBy('number', 'desc')
    .execute()
  return rows.map((row) => ({
    ...{ price: row.price as Price, by: row.stated_by, reason: row.reason, at: row.stated_at as Millis },
  }))
}

/** The newest one; null if there is none. */
export async function statedPrice(db: Db, marketId: number): Promise<Price | null> {
  const row = await db
    .selectFrom('final_prices')
    .select('price')
    .where('market_id', '=', marketId)
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row === undefined ? null : (row.price as Price)
}

/** States a market's final price. Earlier statements stay as they are. */
export async function stateFinalPrice(db: Db, marketId: number, stated: StatedPrice): Promise<void> {
  await sql`
    insert into final_prices (market_id, number, price, stated_by, reason, stated_at)
    select ${marketId}, coalesce((select max(number) from final_prices where market_id = ${marketId}), 0) + 1,
      ${stated.price}::numeric, ${stated.by}, ${stated.reason}, ${stated.at}
  `.execute(db)
}

/**
 * The engine writes an order when it is accepted, triggered, begins to close and ends. Without this index, which no
 * query needs, such a write changes the row in place.
 */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`drop index orders_settling`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`create index orders_settling on orders (market_id, user_id) where settling > 0`.execute(db)
}

/**
 * The end of an order changes its row in place: no index of `orders` depends on `ended_at`, so that an order that ends without a fill adds no entry to any
 * of them.
 */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
      drop index orders_active, orders_live_by_client_id;
      create index orders_settling on orders (market_id, user_id) where settling > 0;
    `)
    .execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
      drop index orders_settling;
      create index orders_active on orders (market_id, user_id) where ended_at is null;
      create index orders_live_by_client_id on orders (user_id, client_order_id) where (client_order_id is not null) and (ended_at is null);
    `)
    .execute(db)
}

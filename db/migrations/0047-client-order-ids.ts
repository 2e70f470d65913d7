import { type Kysely, sql } from 'kysely'

/**
 * A label that a trader gives an order. The index of live orders is not unique: a rollback of the chain may revive an ended order whose label
 * another order has taken since. Orders without a label are in neither index.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table orders add client_order_id text;
    create index orders_live_by_client_id on orders (user_id, client_order_id)
      where client_order_id is not null and ended_at is null;
    create index orders_by_client_id on orders (user_id, client_order_id, accepted_at) where client_order_id is not null;
    grant insert (client_order_id) on orders to clearbatch_api;
    alter table read.orders add client_order_id text
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table read.orders drop client_order_id;
    drop index orders_by_client_id;
    drop index orders_live_by_client_id;
    alter table orders drop client_order_id
  `.execute(db)
}

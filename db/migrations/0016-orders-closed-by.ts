import { type Kysely, sql } from 'kysely'

/** Reduce-only orders leave the book with the fill that closes their position: the column names that fill. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table orders add column closed_by text;
    grant update (closed_by) on orders to clearbatch_api, clearbatch_keeper, clearbatch_indexer;
    drop index orders_protective
  `.execute(db)
}

/** The earlier version takes an order with a closing reason for one that ends: those that left the book and have not ended return to it. */
export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    update orders set closing_reason = null
      where closing_reason = 'POSITION_CLOSED' and status <> 'CANCEL_PENDING_FINALIZE' and ended_at is null;
    alter table orders drop column closed_by;
    create index orders_protective on orders (market_id, user_id)
      where ended_at is null and reduce_only and type not in ('MARKET', 'LIMIT')
  `.execute(db)
}

import { type Kysely, sql } from 'kysely'

/** Traders often list their open orders: the index finds them without reading every order that the trader ever placed. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create index read_orders_live on read.orders (user_id, accepted_at, order_id)
      where status in ('OPEN', 'PENDING_TRIGGER', 'CANCEL_PENDING_FINALIZE')
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop index read.read_orders_live`.execute(db)
}
